-- walk.lua: the tiers of some lines.

-- The keys of a line: its tier's shape, its counters, what is taken, what is sold.
local LINE_KEYS = 4

-- Calls `visit(taken_key, sold_key, line, grid)` for each line whose tier is loaded, and answers the grid of
-- each line, with the place of its first key as `key`; false if its tier is not loaded.
local function each_tier(lines, first_key, visit)
  local grids = {}
  for i, line in ipairs(lines) do
    local key = first_key + LINE_KEYS * (i - 1)
    local grid = grid_of(KEYS[key])
    grids[i] = grid or false
    if grid then
      grid.key = key
      visit(KEYS[key + 2], KEYS[key + 3], line, grid)
    end
  end
  return grids
end

-- The bits of a line in the bitmaps of its tier, as runs.
local function runs_of_line(line, grid)
  return runs_of(line.seats, grid.places, grid.legs, line.from, line.to)
end
