-- bits.lua: reading, freeing and writing runs, of which a repair may have very many.

-- Lua's stack holds some thousand values; one command takes at most this many runs.
local RUNS_A_COMMAND = 200

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
    for _, value in ipairs(call('BITFIELD', key, unpack(fields))) do
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
    call('BITFIELD', key, unpack(fields, start, last))
  end
end

