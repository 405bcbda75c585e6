-- walk.lua: every bitmap of some lines.

-- Calls `visit(taken_key, sold_key, line, leg, grid)` for each leg that the tier of a line has, and
-- answers the grid of each line, false if its tier is not loaded. The keys of a line are its tier's,
-- then, leg by leg, those of what is taken and of what is sold.
local function each_bitmap(lines, first_key, visit)
  local grids = {}
  local key = first_key
  for i, line in ipairs(lines) do
    local grid = grid_of(KEYS[key])
    grids[i] = grid or false
    for leg = line.from, line.to - 1 do
      if grid and leg < grid.legs then
        visit(KEYS[key + 1], KEYS[key + 2], line, leg, grid)
      end
      key = key + 2
    end
    key = key + 1
  end
  return grids
end

