-- Applies a batch inside Redis, in one step: the same algorithm as load.ts and `applyBatch` in batch.ts, under the same
-- names. KEYS: the scopes in the order of the batch. ARGV[1]: the batch as JSON. All numbers are whole and below 2^53,
-- where Lua is exact; they are packed by cmsgpack, because cjson would write 14 digits only.

local unitsPerWhole = 60000
local lowMarksMax = 256
local sequencesPerMs = 1000
-- A load that still counts after this has a debt of a month.
local lifetimeMaxMs = 2592000000

local batch = cjson.decode(ARGV[1])
-- The server's time, one clock for all processes; only tests send their own.
local nowMs = batch.nowMs
if not nowMs then
  local time = redis.call('TIME')
  nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
end
local untilMs = nowMs + batch.leaseMs

local function newBucket(limit)
  return { limit = limit, usedUnits = 0, atMs = nowMs, pace = limit }
end

local function setLimit(bucket, limit)
  bucket.pace = math.max(bucket.pace, bucket.limit)
  bucket.limit = limit
  if bucket.usedUnits <= limit * unitsPerWhole then bucket.pace = limit end
end

local function advanceBucket(bucket, newLimit)
  local limit = bucket.limit
  local elapsedMs = math.max(0, nowMs - bucket.atMs)
  bucket.atMs = bucket.atMs + elapsedMs
  local capacity = limit * unitsPerWhole
  local fastMs = 0
  if bucket.pace > limit and bucket.usedUnits > capacity then
    fastMs = math.min(elapsedMs, math.ceil((bucket.usedUnits - capacity) / bucket.pace))
    if fastMs > 0 then bucket.usedUnits = math.max(capacity, bucket.usedUnits - fastMs * bucket.pace) end
  end
  bucket.usedUnits = math.max(0, bucket.usedUnits - (elapsedMs - fastMs) * limit)
  setLimit(bucket, limit)
  setLimit(bucket, newLimit or limit)
end

local function fits(bucket, wholes)
  if wholes == 0 then return true end
  if bucket.limit == 0 then return false end
  return bucket.usedUnits <= math.max(0, bucket.limit - wholes) * unitsPerWhole
end

-- Positions count from 1 here; `last` is the position of the last mark that is considered.
local function lowerMarks(lowMarks, last, leastUnits)
  local start = last + 1
  while start > 1 and lowMarks[start - 1].leastUnits >= leastUnits do start = start - 1 end
  if start > last then return end
  local oldest = lowMarks[start]
  oldest.leastUnits = leastUnits
  for _ = start + 1, last do
    oldest.running = oldest.running + table.remove(lowMarks, start + 1).running
  end
end

local function dropEmptyMarks(lowMarks)
  while lowMarks[1] and lowMarks[1].leastUnits == 0 do table.remove(lowMarks, 1) end
end

local function joinNearestMarks(lowMarks)
  local nearest, least = 2, math.huge
  for at = 2, #lowMarks do
    local difference = lowMarks[at].leastUnits - lowMarks[at - 1].leastUnits
    if difference < least then nearest, least = at, difference end
  end
  local joined = table.remove(lowMarks, nearest)
  lowMarks[nearest - 1].running = lowMarks[nearest - 1].running + joined.running
end

local function reserve(load, tokens)
  local bucket, lowMarks, sequence = load.tokens, load.lowMarks, load.sequence
  load.sequence = sequence + 1
  lowerMarks(lowMarks, #lowMarks, bucket.usedUnits)
  bucket.usedUnits = bucket.usedUnits + tokens * unitsPerWhole
  lowMarks[#lowMarks + 1] = { first = sequence, leastUnits = bucket.usedUnits, running = 1 }
  if #lowMarks > lowMarksMax then joinNearestMarks(lowMarks) end
  dropEmptyMarks(lowMarks)
  return sequence
end

local function correct(load, correction)
  if not load.tokens then load.tokens = newBucket(correction.tokensPerMinute) end
  local bucket, lowMarks = load.tokens, load.lowMarks
  advanceBucket(bucket)
  lowerMarks(lowMarks, #lowMarks, bucket.usedUnits)
  local at = #lowMarks
  while at > 0 and lowMarks[at].first > correction.sequence do at = at - 1 end
  local mark = lowMarks[at]
  local restUnits = (correction.reservedTokens - correction.actualTokens) * unitsPerWhole
  if restUnits < 0 then bucket.usedUnits = bucket.usedUnits - restUnits end
  if mark then
    mark.running = mark.running - 1
    if restUnits > 0 then
      local units = math.min(restUnits, mark.leastUnits)
      bucket.usedUnits = bucket.usedUnits - units
      for later = at, #lowMarks do lowMarks[later].leastUnits = lowMarks[later].leastUnits - units end
      lowerMarks(lowMarks, at, mark.leastUnits)
    end
    if mark.running == 0 then
      for still = 1, #lowMarks do
        if lowMarks[still] == mark then
          table.remove(lowMarks, still)
          break
        end
      end
    end
  end
  dropEmptyMarks(lowMarks)
end

local function advanceLoad(load, limits)
  local requests, tokens = limits.requestsPerMinute, limits.tokensPerMinute
  if requests and not load.requests then load.requests = newBucket(requests) end
  if tokens and not load.tokens then load.tokens = newBucket(tokens) end
  if load.requests then advanceBucket(load.requests, requests) end
  if load.tokens then advanceBucket(load.tokens, tokens) end
end

local function seedBucket(bucket, seed, isLost)
  local units = bucket.usedUnits + (isLost and seed.lostUnits or 0) + seed.addedUnits
  bucket.usedUnits = math.max(bucket.usedUnits, math.min(units, bucket.limit * unitsPerWhole))
end

local function seedLoad(load, seed)
  local lostRequests, lostTokens = not load.requests, not load.tokens
  advanceLoad(load, seed.limits)
  if load.requests then seedBucket(load.requests, seed.requests, lostRequests) end
  if load.tokens then seedBucket(load.tokens, seed.tokens, lostTokens) end
end

local function setRunning(load, running)
  load.slots[batch.replica] = running > 0 and { running = running, untilMs = untilMs } or nil
end

local function runningIn(load)
  local running = 0
  for _, slots in pairs(load.slots) do
    if slots.untilMs > nowMs then running = running + slots.running end
  end
  return running
end

local function hasRoom(load, limits, tokens)
  if limits.requestsPerMinute and not fits(load.requests, 1) then return false end
  if limits.tokensPerMinute and not fits(load.tokens, tokens) then return false end
  return not limits.concurrentRequests or runningIn(load) < limits.concurrentRequests
end

local function beginRequest(load, limits, tokens)
  if limits.requestsPerMinute then load.requests.usedUnits = load.requests.usedUnits + unitsPerWhole end
  return limits.tokensPerMinute and reserve(load, tokens) or -1
end

-- A load as ten numbers, -1 for what is missing; redis-loads.ts reads them.
local function putReading(answer, load, sequence)
  for _, bucket in ipairs({ load.requests or false, load.tokens or false }) do
    answer[#answer + 1] = bucket and bucket.limit or -1
    answer[#answer + 1] = bucket and bucket.usedUnits or -1
    answer[#answer + 1] = bucket and bucket.atMs or -1
    answer[#answer + 1] = bucket and bucket.pace or -1
  end
  answer[#answer + 1] = runningIn(load)
  answer[#answer + 1] = sequence
end

local loads = {}

local function admit(operation)
  local admitted = true
  for _, scope in ipairs(operation.scopes) do
    local load = loads[scope.at + 1]
    advanceLoad(load, scope.limits)
    admitted = admitted and hasRoom(load, scope.limits, operation.tokens)
  end
  local answer = { admitted and 1 or 0 }
  for _, scope in ipairs(operation.scopes) do
    local load = loads[scope.at + 1]
    local sequence = -1
    if admitted then
      sequence = beginRequest(load, scope.limits, operation.tokens)
      local slots = load.slots[batch.replica]
      setRunning(load, (slots and slots.running or 0) + 1)
    end
    putReading(answer, load, sequence)
  end
  return answer
end

-- At least this long; a little more does no harm. A test's time does not pass for Redis.
local function lifetimeMs(load)
  if batch.nowMs then return lifetimeMaxMs end
  local lifetime = 0
  for _, bucket in ipairs({ load.requests or false, load.tokens or false }) do
    if bucket and bucket.usedUnits > 0 then
      local drainedMs = bucket.atMs - nowMs + math.ceil(bucket.usedUnits / math.max(1, bucket.limit))
      lifetime = math.max(lifetime, drainedMs)
    end
  end
  for replica, slots in pairs(load.slots) do
    if slots.untilMs <= nowMs then load.slots[replica] = nil else lifetime = math.max(lifetime, slots.untilMs - nowMs) end
  end
  return math.min(lifetime, lifetimeMaxMs)
end

for at, key in ipairs(KEYS) do
  local packed = redis.call('GET', key)
  local isWhole, load = pcall(cmsgpack.unpack, packed or '')
  if not packed or not isWhole then load = { sequence = nowMs * sequencesPerMs, lowMarks = {}, slots = {} } end
  loads[at] = load
  setRunning(load, batch.scopes[at].running)
end

for _, correction in ipairs(batch.corrections) do correct(loads[correction.at + 1], correction) end
for at, scope in ipairs(batch.scopes) do
  if scope.seed then seedLoad(loads[at], scope.seed) end
end
local answers = {}
for at, operation in ipairs(batch.admits) do answers[at] = admit(operation) end

for at, key in ipairs(KEYS) do
  local lifetime = lifetimeMs(loads[at])
  if lifetime > 0 then
    redis.call('SET', key, cmsgpack.pack(loads[at]), 'PX', string.format('%.0f', lifetime))
  else
    redis.call('DEL', key)
  end
end
return answers
