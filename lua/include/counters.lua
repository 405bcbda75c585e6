-- counters.lua: what a caller has seen of how often seats were freed.

-- The counters of the blocks that some seats lie in, in the order of the blocks, joined by '.'.
local function counters_of(freed_key, seats)
  local fields = {}
  for _, block in ipairs(blocks_of(seats, math.huge)) do
    local n = #fields
    fields[n + 1], fields[n + 2], fields[n + 3] = 'GET', 'u32', block
  end
  return fields[1] and table.concat(call('BITFIELD', freed_key, unpack(fields)), '.') or ''
end

