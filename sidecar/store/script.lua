-- Many decisions over many buckets in one atomic step. ../limiter/token-bucket.ts is its twin, line by line.
--
-- A bucket is one string, "level stamp generation capacity unitsPerToken unitsPerTick tickUs". A missing key is a
-- full bucket. Every number is an integer that a double holds exactly; nothing is divided on the way.
--
-- KEYS  the distinct buckets of this call.
-- ARGV  1: per key two bytes, the place of its limit among the texts below (from 1).
--       2: the decisions, in bytes: operation, want, after, n, and n pairs (position in KEYS, weight in tokens).
--          Operation a = acquire 0..want times, p = peek, r = refund, c = charge down to zero. In upper case
--          its numbers have five bytes each, else one. after = an earlier decision of this call whose grant
--          bounds want; 0 = none. All numbers are in base 128, so that the whole call is ASCII: a string each
--          would cost more than what is decided with it.
--       3..: the distinct limit texts ("generation capacity unitsPerToken unitsPerTick tickUs", the tail of
--          the state).
-- Reply now in µs; per decision granted (-1: foreign value) and wait in µs (-1: never); per key its level (-1:
--       foreign); then pairs (position, limit text) of keys that are under another limit than the call named.
--
-- There is no "#!lua" line: with it a full Redis would refuse denials and peeks too.
local call, match, format, byte = redis.call, string.match, string.format, string.byte
local floor, ceil, min, max = math.floor, math.ceil, math.min, math.max

-- Below 2^53, because clients read the integer 9007199254740991 as …992.
local MAX = 9000000000000000
-- A clock further behind a stored instant than this was stepped, or belongs to a promoted replica.
local MAX_CLOCK_AHEAD_US = 5000000

-- Read once: inside a script the clock goes on.
local time = call('TIME')
local now = time[1] * 1000000 + time[2]

-- A limit text is parsed once per call and then compared by identity. False = not a limit.
local limits = {}
local function limit_of(text)
  local known = limits[text]
  if known ~= nil then return known end
  local q = false
  local generation, capacity, upt, rate, tick = match(text, '^(%d+) (%d+) (%d+) (%d+) (%d+)$')
  if generation then
    q = {
      generation = tonumber(generation), capacity = tonumber(capacity),
      upt = tonumber(upt), rate = tonumber(rate), tick = tonumber(tick), text = text,
    }
    q.full = q.capacity * q.upt
    if q.generation > MAX or q.full < 1 or q.full > MAX or q.rate < 1 or q.rate > MAX or q.tick < 1 or q.tick > MAX then
      q = false
    else
      -- The tick that now lies in, and the end of it.
      q.begun, q.ended = floor(now / q.tick), ceil(now / q.tick)
    end
  end
  limits[text] = q
  return q
end

-- floor(a * b / c) for a < c, exact also where the product passes 2^53: long division, bit by bit of b.
-- It runs once per bucket and edit.
local function scale(a, b, c)
  if a * b <= MAX then return floor(a * b / c) end
  local quotient, rest, bit = 0, 0, 4503599627370496
  while bit >= 1 do
    quotient = quotient + quotient
    if rest >= c - rest then rest, quotient = rest - (c - rest), quotient + 1 else rest = rest + rest end
    if b >= bit then
      b = b - bit
      if rest >= c - a then rest, quotient = rest - (c - a), quotient + 1 else rest = rest + a end
    end
    bit = bit / 2
  end
  return quotient
end

local level, stamp, lim, dirty = {}, {}, {}, {}

-- Loads the i-th key as of now. lim[i] = false: a foreign value, which fails only the decisions that name it and
-- is never overwritten.
local function load(i, value, mine)
  if not value then
    -- MGET shows a wrong type as a missing key.
    if call('EXISTS', KEYS[i]) == 1 then lim[i] = false return end
    -- Full, and stamped at the end of the tick: no part of a tick is credited twice.
    level[i], stamp[i], lim[i] = mine.full, mine.ended, mine
    return
  end
  local l, s, text = match(value, '^(%d+) (%d+) (.+)$')
  local q = l and limit_of(text)
  l, s = tonumber(l), tonumber(s)
  if not q or l > q.full or s > MAX then lim[i] = false return end
  if q.begun > s then
    -- Refill under the stored limit. Compared before it is multiplied: a year of ticks times the rate is not exact.
    local elapsed = q.begun - s
    if elapsed >= ceil((q.full - l) / q.rate) then l = q.full else l = l + elapsed * q.rate end
    s = q.begun
  elseif (s - q.ended) * q.tick > MAX_CLOCK_AHEAD_US then
    -- Re-anchored without credit, and kept even if denied: else the bucket is frozen for the whole step.
    s = q.ended
    dirty[i] = true
  end
  -- A newer stored generation is obeyed as it is.
  if q ~= mine and q.generation <= mine.generation then
    if q.full ~= mine.full or q.upt ~= mine.upt or q.rate ~= mine.rate or q.tick ~= mine.tick then
      -- Whole tokens are kept, the fraction is scaled.
      local whole = floor(l / q.upt)
      local part = scale(l - whole * q.upt, mine.upt, q.upt)
      -- Growth belongs to a newer generation only: two sidecars that disagree would mint it at every flip.
      if q.generation < mine.generation and mine.capacity > q.capacity then whole = whole + mine.capacity - q.capacity end
      if whole >= mine.capacity then l = mine.full else l = whole * mine.upt + part end
      if q.tick ~= mine.tick then s = max(mine.ended, ceil(s * q.tick / mine.tick)) end
      -- Kept even if denied: else an empty bucket lives on at its old rate.
      dirty[i] = true
    end
    q = mine
  end
  if l == q.full and s < q.ended then s = q.ended end
  level[i], stamp[i], lim[i] = l, s, q
end

local values, places, named = call('MGET', unpack(KEYS)), ARGV[1], {}
for i = 1, #KEYS do
  local high, low = byte(places, 2 * i - 1, 2 * i)
  local mine = limit_of(ARGV[2 + 128 * high + low])
  named[i] = mine
  load(i, values[i], mine)
end

local ops, at = ARGV[2], 1
local function wide()
  local a, b, c, d, e = byte(ops, at, at + 4)
  at = at + 5
  return (((a * 128 + b) * 128 + c) * 128 + d) * 128 + e
end

local ACQUIRE, PEEK, REFUND, LOWER, UPPER = byte('apraA', 1, 5)
local position, weight = {}, {}
local out, decisions, size = {now}, 0, #ops
while at <= size do
  local op, want, after, n = byte(ops, at, at + 3)
  if op >= LOWER then
    at = at + 4
    for b = 1, n do
      position[b], weight[b] = byte(ops, at, at + 1)
      at = at + 2
    end
  else
    op, at = op + LOWER - UPPER, at + 1
    want, after, n = wide(), wide(), wide()
    for b = 1, n do position[b], weight[b] = wide(), wide() end
  end
  if after > 0 then want = min(want, max(0, out[2 * after])) end
  local granted, wait = want, 0
  -- How often all buckets can pay. All or nothing: one that cannot, and none is charged.
  for b = 1, n do
    local i = position[b]
    local q = lim[i]
    if not q then granted = -1 break end
    if op == ACQUIRE or op == PEEK then granted = min(granted, floor(level[i] / (q.upt * weight[b]))) end
  end
  if granted >= 0 and op ~= PEEK and granted > 0 then
    for b = 1, n do
      local i = position[b]
      local q, l = lim[i], level[i]
      local units = granted * weight[b] * q.upt
      -- A refund clamps at full, so one to a missing key changes nothing and creates none.
      if op == REFUND then units = min(q.full, l + units) else units = max(0, l - units) end
      if units ~= l then level[i] = units dirty[i] = true end
    end
  end
  if granted >= 0 and granted < want then
    -- A peek has not taken what it granted.
    local ahead = op == PEEK and granted or 0
    for b = 1, n do
      local i, w = position[b], weight[b]
      local q = lim[i]
      if w > q.capacity then wait = -1 break end
      local units = q.upt * w
      local need = units - (level[i] - ahead * units)
      if need > 0 then
        wait = max(wait, min(MAX, ceil(need / q.rate) * q.tick + (max(stamp[i], q.begun) * q.tick - now)))
      end
    end
  end
  decisions = decisions + 1
  out[2 * decisions], out[2 * decisions + 1] = granted, wait
end

local levels = 1 + 2 * decisions
local extra = levels + #KEYS
for i = 1, #KEYS do
  local q = lim[i]
  out[levels + i] = q and level[i] or -1
  if q and q ~= named[i] then
    out[extra + 1], out[extra + 2] = i, q.text
    extra = extra + 2
  end
end

-- Every write last, each bucket once: an error above has charged nothing, and a denial writes nothing.
for i = 1, #KEYS do
  if dirty[i] then
    local q = lim[i]
    -- The time to full, or a missing key would be full too early; a stamp that is ahead counts on top.
    local fill_us = (q.full - level[i]) / q.rate * q.tick + max(0, stamp[i] * q.tick - now)
    local ttl = min(MAX, ceil(fill_us / 1000) + 1000)
    call('SET', KEYS[i], format('%d %d %s', level[i], stamp[i], q.text), 'PX', ttl)
  end
end
return out
