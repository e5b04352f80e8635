-- A WorkloadDeployment is healthy when all it asks for runs.
function InterpretHealth(observedObj)
  local status = observedObj.status
  if type(status) ~= "table" or type(status.conditions) ~= "table" then return false end
  for _, condition in ipairs(status.conditions) do
    if condition.type == "Ready" then return condition.status == "True" end
  end
  return false
end
