-- Keeps the number of an autoscaled WorkloadDeployment in its cell (autoscaling.md 2): it is decided there, and
-- the hub's copy has none. Any other deployment is returned as it came, so that an edit of its scale reaches it.
local function is_autoscaled(spec)
  local settings = type(spec) == "table" and spec.scaleSettings
  if type(settings) ~= "table" or type(settings.metrics) ~= "table" then return false end
  return settings.maxReplicas ~= nil and #settings.metrics > 0
end

function Retain(desiredObj, observedObj)
  if is_autoscaled(desiredObj.spec) and type(observedObj.spec) == "table" then
    desiredObj.spec.replicas = observedObj.spec.replicas
  end
  return desiredObj
end
