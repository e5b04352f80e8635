-- Health of a Workload: Ready of the status that was computed from the current spec.
local health = {status = "Progressing", message = "Waiting for the management operator"}
local status = obj.status
if status == nil or status.conditions == nil then return health end
if status.observedGeneration ~= obj.metadata.generation then return health end
-- Reasons that stay until a person changes the Workload, its quota or its configuration.
local blocked = {
  CityCodeMismatch = true,
  ConfigurationError = true,
  ImageUnavailable = true,
  InstanceCrashing = true,
  InstanceFailedToCreate = true,
  NameCollision = true,
  NetworkFailedToCreate = true,
  NetworkNotFound = true,
  NoMatchingLocation = true,
  QuotaNotGranted = true,
  SourceNameTaken = true,
  SourceNameTooLong = true,
  SourceNotFound = true,
  SourceNotSupported = true,
  SourceTooLarge = true,
  SourceUnauthorized = true,
  UnknownInstanceType = true,
}
for _, condition in ipairs(status.conditions) do
  if condition.type == "Ready" then
    health.message = condition.message
    if condition.status == "True" then
      health.status = "Healthy"
    elseif condition.reason == "Suspended" then
      health.status = "Suspended"
    elseif blocked[condition.reason] then
      health.status = "Degraded"
    end
  end
end
return health
