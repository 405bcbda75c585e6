-- grid.lua: the shape of a tier.

-- Rows, bytes of a row, places, and legs; nil if the tier is not loaded.
local function grid_of(tier_key)
  local shape = call('HMGET', tier_key, 'rows', 'row_bytes', 'legs')
  if not shape[2] then
    return nil
  end
  local rows, row_bytes = tonumber(shape[1]), tonumber(shape[2])
  return {
    rows = rows, row_bytes = row_bytes, places = rows * row_bytes * 8, legs = tonumber(shape[3]),
  }
end

