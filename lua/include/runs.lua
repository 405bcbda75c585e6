-- runs.lua: many seats of one bitmap in one command.

-- A run is read and written as one unsigned integer, and bit.band knows 32 bits.
local LONGEST_RUN = 30

-- Seats as runs of neighbours: {first, count, first, count, ...}. Seats outside of the grid are
-- left out: there is no bit to change, and a write would lengthen the bitmap.
local function runs_of(seats, places)
  local runs, last = nil, 0
  for i = 1, #seats do
    local seat = seats[i]
    if seat >= places then
      -- There is no such place.
    elseif not runs then
      runs, last = { seat, 1 }, 2
    elseif runs[last - 1] + runs[last] == seat and runs[last] < LONGEST_RUN then
      runs[last] = runs[last] + 1
    else
      runs[last + 1], runs[last + 2] = seat, 1
      last = last + 2
    end
  end
  return runs or {}
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

