-- walk.lua: every bitmap of some lines.

-- Calls `visit(taken_key, sold_key, line, leg, grid)` for each leg that the tier of a line has, and
-- answers the grid of each line, with the place of its first key as `key`, false if its tier is not
-- loaded. The keys of a line are `of_tier` keys of its tier, first that of its shape, then, leg by leg,
-- those of what is taken and of what is sold.
local function each_bitmap(lines, first_key, of_tier, visit)
  local grids = {}
  local key = first_key
  for i, line in ipairs(lines) do
    local grid = grid_of(KEYS[key])
    grids[i] = grid or false
    if grid then
      grid.key = key
    end
    key = key + of_tier
    for leg = line.from, line.to - 1 do
      if grid and leg < grid.legs then
        visit(KEYS[key], KEYS[key + 1], line, leg, grid)
      end
      key = key + 2
    end
  end
  return grids
end

