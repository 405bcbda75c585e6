-- grid.lua: the shape of a tier.

-- Rows, bytes of a row, bits of a bitmap, how many legs have one, and how often seats were freed, as
-- text; nil if the tier is not loaded.
local function grid_of(tier_key)
  local shape = call('HMGET', tier_key, 'rows', 'row_bytes', 'legs', 'freed')
  if not shape[2] then
    return nil
  end
  local rows, row_bytes = tonumber(shape[1]), tonumber(shape[2])
  return {
    rows = rows, row_bytes = row_bytes, places = rows * row_bytes * 8, legs = tonumber(shape[3]),
    freed = shape[4],
  }
end

