-- runs.lua: many seats of a tier in one command.
--
-- A tier has one bitmap for all of its legs: a byte for eight places, and of each such byte one for every
-- leg, one after another. So a seat's bits on a journey lie beside each other.

-- A run is read and written as one unsigned integer, and bit.band knows 32 bits.
local LONGEST_RUN = 30

-- The bits of some seats from leg `from` until leg `to` of a tier of `legs`, as runs of neighbours: {first,
-- count, first, count, ...}. What lies outside of the grid is left out: there is no bit to change, and a
-- write would lengthen the bitmap.
local function runs_of(seats, places, legs, from, to)
  local runs, last = nil, 0
  for i = 1, #seats do
    local seat = seats[i]
    if seat >= places then
      -- There is no such place.
    elseif not runs then
      runs, last = { seat, 1 }, 2
    elseif runs[last - 1] + runs[last] == seat and runs[last] < LONGEST_RUN
      and (legs == 1 or seat % 8 > 0) then
      runs[last] = runs[last] + 1
    else
      runs[last + 1], runs[last + 2] = seat, 1
      last = last + 2
    end
  end
  if not runs or from >= legs then
    return {}
  elseif legs == 1 then
    return runs
  end
  local bits, n = {}, 0
  for i = 1, last, 2 do
    local column = runs[i] % 8
    local first = (runs[i] - column) * legs + column
    for leg = from, math.min(to, legs) - 1 do
      bits[n + 1], bits[n + 2] = first + 8 * leg, runs[i + 1]
      n = n + 2
    end
  end
  return bits
end

-- The arguments of BITFIELD that set every bit of some runs.
local function setting(runs)
  if not runs[1] then
    return {}
  end
  local fields = { 'SET', 'u' .. runs[2], runs[1], 2 ^ runs[2] - 1 }
  for i = 3, #runs, 2 do
    local count, n = runs[i + 1], 2 * i - 2
    fields[n + 1], fields[n + 2] = 'SET', 'u' .. count
    fields[n + 3], fields[n + 4] = runs[i], 2 ^ count - 1
  end
  return fields
end

