-- Folds the statuses that cells report for one WorkloadDeployment into the status of its hub copy
-- (management.md 6). Karmada runs it in a pooled Lua 5.1 sandbox: everything is local, because globals would
-- outlive the call; string.gsub, string.rep and metatables do not exist there; empty tables vanish.

-- ranks: begin (written by `nox -s generate` from compute_api_types.conditions)
local RANKS = {
  CityCodeMismatch = 8,
  NameCollision = 7,
  NetworkFailedToCreate = 7,
  InstanceFailedToCreate = 6,
  NetworkNotFound = 6,
  ConfigurationError = 5,
  ImageUnavailable = 5,
  InstanceCrashing = 5,
  SourceNameTooLong = 5,
  SourceNotFound = 5,
  SourceTooLarge = 5,
  SourceUnauthorized = 5,
  UnknownInstanceType = 5,
  AwaitingPropagation = 4,
  ReferencedDataNotReady = 4,
  Resolving = 4,
  PendingQuota = 3,
  QuotaExceeded = 3,
  QuotaNotGranted = 3,
  NetworkProvisioning = 2,
  NoMatchingLocation = 2,
  InstancesProvisioning = 1,
  Provisioning = 1,
  NoAvailableDeployments = 0,
  NoAvailablePlacements = 0,
  SchedulingGatesPresent = 0,
}
-- ranks: end

local COUNTERS = { "replicas", "currentReplicas", "updatedReplicas", "desiredReplicas", "readyReplicas" }
local REPORTING = "CellsReporting"

local function now()
  return os.date("!%Y-%m-%dT%H:%M:%SZ")
end

local function table_or_empty(value)
  if type(value) == "table" then return value end
  return {}
end

local function number_or_zero(value)
  if type(value) == "number" then return value end
  return 0
end

local function rank(reason)
  if reason == "Pending" or reason == "PendingProgramming" then return -1 end
  return RANKS[reason] or 0
end

-- The first entry counts, should a cell send a type twice.
local function condition_of(status, wanted_type)
  for _, condition in ipairs(table_or_empty(table_or_empty(status).conditions)) do
    if type(condition) == "table" and condition.type == wanted_type then return condition end
  end
  return nil
end

-- What a cell counts as that said nothing about a type: its last word may be about an older change.
local function not_accepted_yet()
  return {
    status = "Unknown",
    reason = "InstancesProvisioning",
    message = "A cell has not accepted the latest change yet",
  }
end

local function restated(wanted_type, said, old, generation)
  local stored = condition_of(old, wanted_type)
  local since = said.lastTransitionTime or now()
  if stored ~= nil and stored.status == said.status and stored.lastTransitionTime ~= nil then
    since = stored.lastTransitionTime
  end
  return {
    type = wanted_type,
    status = said.status,
    reason = said.reason,
    message = said.message or "",
    lastTransitionTime = since,
    observedGeneration = generation,
  }
end

local function by_type(first, second)
  return first.type < second.type
end

local function by_cluster(first, second)
  return first.clusterName < second.clusterName
end

-- A defaulted status has observedGeneration 0: the cell has the object and has not handled it yet.
local function is_reporting(item)
  local status = table_or_empty(item.status)
  return item.applied == true
    and type(status.replicas) == "number"
    and number_or_zero(status.observedGeneration) ~= 0
end

local function named_in(message)
  local names = {}
  for name in string.gmatch(message or "", "[^,]+") do names[name] = true end
  return names
end

local function any_named(items, names)
  for _, item in ipairs(items) do
    if names[item.clusterName] then return true end
  end
  return false
end

-- Every cell that once reported is silent now, but known to run: keep its numbers, doubt what was True.
local function silent_status(old, reporting)
  local generation = number_or_zero(old.observedGeneration)
  local conditions = {}
  for _, condition in ipairs(table_or_empty(old.conditions)) do
    if type(condition) == "table" and type(condition.type) == "string" and condition.type ~= REPORTING then
      local said = condition
      if condition.type ~= "Available" and condition.status == "True" then said = not_accepted_yet() end
      conditions[#conditions + 1] = restated(condition.type, said, old, generation)
    end
  end
  local doubt = { status = "Unknown", reason = "CellsSilent", message = reporting.message }
  conditions[#conditions + 1] = restated(REPORTING, doubt, old, generation)
  table.sort(conditions, by_type)
  local status = { observedGeneration = generation, location = old.location, conditions = conditions }
  for _, counter in ipairs(COUNTERS) do status[counter] = number_or_zero(old[counter]) end
  return status
end

-- Nobody runs it: never delivered, or the cell that ran it has left.
local function empty_status(old, items)
  local reason = "CellsSilent"
  if #items == 0 then reason = "NoCellPlaced" end
  local nobody = { status = "False", reason = reason, message = "" }
  local status = { observedGeneration = 0, conditions = { restated(REPORTING, nobody, old, 0) } }
  for _, counter in ipairs(COUNTERS) do status[counter] = 0 end
  return status
end

local function same_location(cells)
  local first = cells[1].status.location
  if type(first) ~= "table" then return nil end
  for _, cell in ipairs(cells) do
    local location = cell.status.location
    if type(location) ~= "table" or location.name ~= first.name then return nil end
    if (location.namespace or "") ~= (first.namespace or "") then return nil end
  end
  return first
end

local function all_answer_to(cells, generation)
  for _, cell in ipairs(cells) do
    if cell.status.observedTemplateGeneration ~= generation then return false end
  end
  return true
end

local function condition_types(cells)
  local seen, types = {}, {}
  for _, cell in ipairs(cells) do
    for _, condition in ipairs(table_or_empty(cell.status.conditions)) do
      local found = type(condition) == "table" and condition.type
      if type(found) == "string" and found ~= REPORTING and not seen[found] then
        seen[found] = true
        types[#types + 1] = found
      end
    end
  end
  table.sort(types)
  return types
end

-- One available cell makes the deployment available; else the most specific blocker speaks.
local function merged_available(cells, totals)
  local blocker
  for _, cell in ipairs(cells) do
    local condition = condition_of(cell.status, "Available")
    if condition ~= nil and condition.status == "True" then
      if #cells == 1 then return condition end
      return {
        status = "True",
        reason = condition.reason,
        message = string.format("%d/%d instances are ready", totals.readyReplicas, totals.replicas),
        lastTransitionTime = condition.lastTransitionTime,
      }
    end
    if condition ~= nil and (blocker == nil or rank(condition.reason) > rank(blocker.reason)) then
      blocker = condition
    end
  end
  return blocker
end

local function blocks_more(condition, blocker)
  if blocker == nil then return true end
  local above = rank(condition.reason) - rank(blocker.reason)
  if above ~= 0 then return above > 0 end
  return condition.status == "False" and blocker.status ~= "False"
end

-- Everything else is True only where every cell that has the deployment says so.
local function merged_other(items, wanted_type)
  local blocker, agreed
  for _, item in ipairs(items) do
    local condition
    if is_reporting(item) then condition = condition_of(item.status, wanted_type) end
    condition = condition or not_accepted_yet()
    if condition.status == "True" then
      agreed = agreed or condition
    elseif blocks_more(condition, blocker) then
      blocker = condition
    end
  end
  return blocker or agreed
end

local function reporting_condition(cells, items, old, generation)
  local names = {}
  for index, cell in ipairs(cells) do names[index] = cell.clusterName end
  table.sort(names)
  local said = { status = "True", reason = "AllCellsReport", message = table.concat(names, ",") }
  if #cells < #items then said.status, said.reason = "False", "CellsSilent" end
  return restated(REPORTING, said, old, generation)
end

local function merged_status(cells, items, old, hub_generation)
  local status = { location = same_location(cells), conditions = {} }
  for _, counter in ipairs(COUNTERS) do
    status[counter] = 0
    for _, cell in ipairs(cells) do
      status[counter] = status[counter] + number_or_zero(cell.status[counter])
    end
  end
  status.observedGeneration = number_or_zero(old.observedGeneration)
  if all_answer_to(cells, hub_generation) then status.observedGeneration = hub_generation end
  for _, wanted_type in ipairs(condition_types(cells)) do
    local said
    if wanted_type == "Available" then
      said = merged_available(cells, status)
    else
      said = merged_other(items, wanted_type)
    end
    status.conditions[#status.conditions + 1] = restated(wanted_type, said, old, status.observedGeneration)
  end
  local reporting = reporting_condition(cells, items, old, status.observedGeneration)
  status.conditions[#status.conditions + 1] = reporting
  table.sort(status.conditions, by_type)
  return status
end

function AggregateStatus(desiredObj, statusItems)
  local old = table_or_empty(desiredObj.status)
  local items, cells = {}, {}
  for _, item in ipairs(table_or_empty(statusItems)) do items[#items + 1] = item end
  table.sort(items, by_cluster)
  for _, item in ipairs(items) do
    if is_reporting(item) then cells[#cells + 1] = item end
  end
  local reporting = condition_of(old, REPORTING) or {}
  if #cells > 0 then
    desiredObj.status = merged_status(cells, items, old, desiredObj.metadata.generation)
  elseif any_named(items, named_in(reporting.message)) then
    desiredObj.status = silent_status(old, reporting)
  else
    desiredObj.status = empty_status(old, items)
  end
  -- Karmada converts all that is returned, and a field name with `|` would stop aggregation for good.
  desiredObj.metadata.managedFields = nil
  desiredObj.spec = nil
  return desiredObj
end
