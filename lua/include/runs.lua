-- runs.lua: many seats of one bitmap in one command.

-- A run is read and written as one unsigned integer, and bit.band knows 32 bits.
local LONGEST_RUN = 30

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

