-- bits.lua: many seats of one bitmap in one command.

-- A run is read and written as one unsigned integer, and bit.band knows 32 bits.
local LONGEST_RUN = 30
-- Lua's stack holds some thousand values; one command takes at most this many runs.
local RUNS_A_COMMAND = 200

-- Seats as runs of neighbours: {first, count, first, count, ...}. Seats outside of the grid are
-- left out: there is no bit to change, and a write would lengthen the bitmap.
local function runs_of(seats, places)
  local runs = {}
  local last = 0
  for _, seat in ipairs(seats) do
    if seat < places then
      local count = runs[last]
      if count and runs[last - 1] + count == seat and count < LONGEST_RUN then
        runs[last] = count + 1
      else
        runs[last + 1], runs[last + 2] = seat, 1
        last = last + 2
      end
    end
  end
  return runs
end

-- The arguments of BITFIELD that set every bit of some runs.
local function setting(runs)
  local fields = {}
  for i = 1, #runs, 2 do
    local count = runs[i + 1]
    local n = #fields
    fields[n + 1], fields[n + 2] = 'SET', 'u' .. count
    fields[n + 3], fields[n + 4] = runs[i], 2 ^ count - 1
  end
  return fields
end

-- The arguments of BITFIELD that clear every bit of some runs.
local function clearing(runs)
  local fields = setting(runs)
  for i = 4, #fields, 4 do
    fields[i] = 0
  end
  return fields
end

-- The values of some runs in one bitmap.
local function reading(key, runs)
  local values = {}
  for start = 1, #runs, 2 * RUNS_A_COMMAND do
    local fields = {}
    for i = start, math.min(start + 2 * RUNS_A_COMMAND, #runs + 1) - 1, 2 do
      local n = #fields
      fields[n + 1], fields[n + 2], fields[n + 3] = 'GET', 'u' .. runs[i + 1], runs[i]
    end
    for _, value in ipairs(redis.call('BITFIELD', key, unpack(fields))) do
      values[#values + 1] = value
    end
  end
  return values
end

-- The arguments of BITFIELD that free some runs: what is sold stays as it is.
local function freeing(taken, sold, runs)
  local fields = clearing(runs)
  local kept = reading(sold, runs)
  for i = 1, #kept do
    if kept[i] ~= 0 then
      local held = reading(taken, { runs[2 * i - 1], runs[2 * i] })
      fields[4 * i] = bit.band(held[1], kept[i])
    end
  end
  return fields
end

-- Carries out what setting, clearing or freeing has prepared.
local function write_bits(key, fields)
  for start = 1, #fields, 4 * RUNS_A_COMMAND do
    local last = math.min(start + 4 * RUNS_A_COMMAND, #fields + 1) - 1
    redis.call('BITFIELD', key, unpack(fields, start, last))
  end
end

