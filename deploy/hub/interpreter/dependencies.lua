-- What a WorkloadDeployment depends on: the ConfigMaps and Secrets in its annotation. Karmada delivers them beside it.
-- Any other text yields nothing: an error would keep the deployment itself from its cell.
function GetDependencies(desiredObj)
  local found = {}
  local metadata = desiredObj.metadata
  if type(metadata) ~= "table" or type(metadata.annotations) ~= "table" then
    return found
  end
  local expected = metadata.annotations["compute.datumapis.com/expected-referenced-data"]
  if type(expected) ~= "string" then
    return found
  end
  for kind, name in string.gmatch(expected, '"(%a+)/([^"]+)"') do
    if kind == "ConfigMap" or kind == "Secret" then
      found[#found + 1] = { apiVersion = "v1", kind = kind, namespace = metadata.namespace, name = name }
    end
  end
  return found
end
