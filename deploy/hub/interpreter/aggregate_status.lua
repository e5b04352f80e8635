-- Folds the statuses that cells report for one WorkloadDeployment into the status of its hub copy
-- (management.md 6). Karmada runs it in a pooled Lua 5.1 sandbox: everything is local, because globals would
-- outlive the call; string.gsub, string.rep and metatables do not exist there; empty tables vanish.

-- ranks: begin (written by `nox -s generate` from compute_api_types.conditions)
local RANKS = {
  Suspended = 9,
  CityCodeMismatch = 8,
  NameCollision = 7,
  NetworkFailedToCreate = 7,
  InstanceFailedToCreate = 6,
  NetworkNotFound = 6,
  ConfigurationError = 5,
  ImageUnavailable = 5,
  InstanceCrashing = 5,
  SourceNameTaken = 5,
  SourceNameTooLong = 5,
  SourceNotFound = 5,
  SourceNotSupported = 5,
  SourceTooLarge = 5,
  SourceUnauthorized = 5,
  UnknownInstanceType = 5,
  AwaitingPropagation = 4,
  CellUnreachable = 4,
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
local SUMMARIES = { "Available", "Ready", "ReplicasReady" }
local REPORTING = "CellsReporting"
-- Of autoscaled deployments alone, by which statuses win: True is the bad one of the second.
local AUTOSCALING = {
  AutoscalingReady = { False = 3, Unknown = 2, True = 1 },
  AutoscalingLimited = { True = 3, Unknown = 2, False = 1 },
}
-- Limits on what one cell supplies, those of management.md 8.3; texts in bytes.
local MOST_CONDITIONS = 16
local LARGEST_COUNTER = 1000000
local LONGEST_TYPE = 316
local LONGEST_REASON = 128
local LONGEST_MESSAGE = 4096
local LONGEST_UID = 64

local function now()
  return os.date("!%Y-%m-%dT%H:%M:%SZ")
end

local function table_or_empty(value)
  if type(value) == "table" then return value end
  return {}
end

local function text_or_empty(value)
  if type(value) == "string" then return value end
  return ""
end

local function number_or_zero(value)
  if type(value) == "number" then return value end
  return 0
end

-- NaN and infinities fail the comparison of the remainder.
local function counter_or_zero(value)
  local number = number_or_zero(value)
  if number % 1 == 0 and number >= 0 and number <= LARGEST_COUNTER then return number end
  return 0
end

local function rank(reason)
  if reason == "Pending" or reason == "PendingProgramming" then return -1 end
  return RANKS[reason] or 0
end

local function bounded(condition)
  local status, reason = condition.status, text_or_empty(condition.reason)
  if status ~= "True" and status ~= "False" then status = "Unknown" end
  if reason == "" or #reason > LONGEST_REASON then reason = "Unknown" end
  local since = condition.lastTransitionTime
  if type(since) ~= "string" then since = nil end
  return {
    status = status,
    reason = reason,
    message = string.sub(text_or_empty(condition.message), 1, LONGEST_MESSAGE),
    lastTransitionTime = since,
  }
end

-- Conditions by type, and their types in order; of a type that occurs twice the first entry counts. One pass:
-- a search per type would take quadratic time. `most` bounds the entries that are read.
local function index_conditions(status, most)
  local by_name, types = {}, {}
  for position, condition in ipairs(table_or_empty(status.conditions)) do
    if most ~= nil and position > most then break end
    local name = type(condition) == "table" and condition.type
    if type(name) == "string" and #name <= LONGEST_TYPE and by_name[name] == nil then
      by_name[name] = bounded(condition)
      types[#types + 1] = name
    end
  end
  return by_name, types
end

-- Stands for a type that a cell has not reported: its last status may belong to an older change.
local function not_accepted_yet()
  return {
    status = "Unknown",
    reason = "InstancesProvisioning",
    message = "A cell has not accepted the latest change yet",
  }
end

local function restated(wanted_type, stated, old_conditions, generation)
  local stored = old_conditions[wanted_type]
  local since = stated.lastTransitionTime or now()
  if stored ~= nil and stored.status == stated.status and stored.lastTransitionTime ~= nil then
    since = stored.lastTransitionTime
  end
  return {
    type = wanted_type,
    status = stated.status,
    reason = stated.reason,
    message = stated.message or "",
    lastTransitionTime = since,
    observedGeneration = generation,
  }
end

local function by_type(first, second)
  return first.type < second.type
end

local function by_cluster(first, second)
  return first.name < second.name
end

-- A defaulted status has observedGeneration 0: the cell has the object and has not handled it yet.
local function has_reported(item, status)
  return item.applied == true
    and type(status.replicas) == "number"
    and number_or_zero(status.observedGeneration) ~= 0
end

-- One cell: reporting, former (its status belongs to another deployment of this name), or silent (neither).
local function read_cell(item, uid)
  local status = table_or_empty(item.status)
  local cell = { name = text_or_empty(item.clusterName), status = status, conditions = {}, types = {} }
  if not has_reported(item, status) then return cell end
  local echo = status.observedTemplateUID
  if type(echo) == "string" and type(uid) == "string" and echo ~= uid then
    cell.is_former = true
    return cell
  end
  cell.is_reporting = true
  cell.conditions, cell.types = index_conditions(status, MOST_CONDITIONS)
  return cell
end

local function read_cells(items, uid)
  local all, reporting, former = {}, {}, {}
  for _, item in ipairs(table_or_empty(items)) do all[#all + 1] = read_cell(item, uid) end
  table.sort(all, by_cluster)
  for _, cell in ipairs(all) do
    if cell.is_reporting then reporting[#reporting + 1] = cell end
    if cell.is_former then former[#former + 1] = cell end
  end
  return all, reporting, former
end

local function named_in(message)
  local names = {}
  for name in string.gmatch(message or "", "[^,]+") do names[name] = true end
  return names
end

local function any_silent(all, names)
  for _, cell in ipairs(all) do
    if names[cell.name] and not cell.is_reporting and not cell.is_former then return true end
  end
  return false
end

-- All cells that once reported are silent now, but known to run: keep their numbers, doubt what was True.
local function silent_status(old, old_conditions, old_types)
  local generation = number_or_zero(old.observedGeneration)
  local conditions = {}
  for _, name in ipairs(old_types) do
    if name ~= REPORTING and AUTOSCALING[name] == nil then
      local stated = old_conditions[name]
      if name ~= "Available" and stated.status == "True" then stated = not_accepted_yet() end
      conditions[#conditions + 1] = restated(name, stated, old_conditions, generation)
    end
  end
  local doubt = { status = "Unknown", reason = "CellsSilent", message = old_conditions[REPORTING].message }
  conditions[#conditions + 1] = restated(REPORTING, doubt, old_conditions, generation)
  table.sort(conditions, by_type)
  local status = { observedGeneration = generation, location = old.location, conditions = conditions }
  for _, counter in ipairs(COUNTERS) do status[counter] = counter_or_zero(old[counter]) end
  return status
end

-- No cell runs it: never delivered, or the cell that ran it has left.
local function empty_status(old_conditions, all)
  local reason = "CellsSilent"
  if #all == 0 then reason = "NoCellPlaced" end
  local none = { status = "False", reason = reason, message = "" }
  local status = { observedGeneration = 0, conditions = { restated(REPORTING, none, old_conditions, 0) } }
  for _, counter in ipairs(COUNTERS) do status[counter] = 0 end
  return status
end

local function former_condition(city)
  return {
    status = "False",
    reason = "InstancesProvisioning",
    message = 'The former deployment of this name is still being deleted in city "' .. city .. '"',
  }
end

-- No cell runs it yet: where it was delivered, another deployment of its name is still there.
local function former_status(old_conditions, all, former, city)
  local status = empty_status(old_conditions, all)
  for _, name in ipairs(SUMMARIES) do
    status.conditions[#status.conditions + 1] = restated(name, former_condition(city), old_conditions, 0)
  end
  table.sort(status.conditions, by_type)
  local echo = former[1].status.observedTemplateUID
  if #echo > LONGEST_UID then echo = "" end
  status.observedTemplateUID = echo
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

-- Whether all cells echo this value; a cell of an older version has no such field.
local function all_echo(cells, field, wanted)
  for _, cell in ipairs(cells) do
    if cell.status[field] ~= wanted then return false end
  end
  return true
end

local function condition_types(cells)
  local seen, types = {}, {}
  for _, cell in ipairs(cells) do
    for _, name in ipairs(cell.types) do
      if name ~= REPORTING and not seen[name] then
        seen[name] = true
        types[#types + 1] = name
      end
    end
  end
  table.sort(types)
  return types
end

-- One available cell makes the deployment available; else the most specific blocker is shown.
local function merged_available(cells, totals)
  local blocker
  for _, cell in ipairs(cells) do
    local condition = cell.conditions.Available
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

-- Everything else is True only where every cell that has the deployment reports it so.
local function merged_other(all, wanted_type, city)
  local blocker, agreed
  for _, cell in ipairs(all) do
    local condition = cell.conditions[wanted_type]
    if condition == nil then
      condition = cell.is_former and former_condition(city) or not_accepted_yet()
    end
    if condition.status == "True" then
      agreed = agreed or condition
    elseif blocks_more(condition, blocker) then
      blocker = condition
    end
  end
  return blocker or agreed
end

-- Over the cells that have it: a cell where the deployment is not autoscaled has no part in it.
local function merged_autoscaling(cells, wanted_type)
  local orders, chosen = AUTOSCALING[wanted_type], nil
  for _, cell in ipairs(cells) do
    local condition = cell.conditions[wanted_type]
    if condition ~= nil and (chosen == nil or orders[condition.status] > orders[chosen.status]) then
      chosen = condition
    end
  end
  return chosen
end

local function reporting_condition(cells, all, old_conditions, generation)
  local names = {}
  for index, cell in ipairs(cells) do names[index] = cell.name end
  table.sort(names)
  local stated = { status = "True", reason = "AllCellsReport", message = table.concat(names, ",") }
  if #cells < #all then stated.status, stated.reason = "False", "CellsSilent" end
  return restated(REPORTING, stated, old_conditions, generation)
end

local function sum_counters(status, cells)
  for _, counter in ipairs(COUNTERS) do
    local sum = 0
    for _, cell in ipairs(cells) do sum = sum + counter_or_zero(cell.status[counter]) end
    if sum > LARGEST_COUNTER then sum = LARGEST_COUNTER end
    status[counter] = sum
  end
end

local function merged_status(cells, all, old, old_conditions, metadata, city)
  local status = { location = same_location(cells), conditions = {} }
  sum_counters(status, cells)
  status.observedGeneration = number_or_zero(old.observedGeneration)
  if all_echo(cells, "observedTemplateGeneration", metadata.generation) then
    status.observedGeneration = metadata.generation
  end
  if all_echo(cells, "suspended", true) then status.suspended = true end
  if all_echo(all, "observedTemplateUID", metadata.uid) then status.observedTemplateUID = metadata.uid end
  local generation = status.observedGeneration
  for _, wanted_type in ipairs(condition_types(cells)) do
    local stated
    if wanted_type == "Available" then
      stated = merged_available(cells, status)
    elseif AUTOSCALING[wanted_type] ~= nil then
      stated = merged_autoscaling(cells, wanted_type)
    else
      stated = merged_other(all, wanted_type, city)
    end
    status.conditions[#status.conditions + 1] = restated(wanted_type, stated, old_conditions, generation)
  end
  status.conditions[#status.conditions + 1] = reporting_condition(cells, all, old_conditions, generation)
  table.sort(status.conditions, by_type)
  return status
end

function AggregateStatus(desiredObj, statusItems)
  local old = table_or_empty(desiredObj.status)
  local old_conditions, old_types = index_conditions(old)
  local city = text_or_empty(table_or_empty(desiredObj.spec).cityCode)
  local all, reporting, former = read_cells(statusItems, desiredObj.metadata.uid)
  local previous = old_conditions[REPORTING] or {}
  if #reporting > 0 then
    desiredObj.status = merged_status(reporting, all, old, old_conditions, desiredObj.metadata, city)
  elseif any_silent(all, named_in(previous.message)) then
    desiredObj.status = silent_status(old, old_conditions, old_types)
  elseif #former > 0 then
    desiredObj.status = former_status(old_conditions, all, former, city)
  else
    desiredObj.status = empty_status(old_conditions, all)
  end
  -- Karmada converts all that is returned, and a field name with `|` would stop aggregation for good.
  desiredObj.metadata.managedFields = nil
  desiredObj.spec = nil
  return desiredObj
end
