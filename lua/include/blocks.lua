-- blocks.lua: the blocks of neighbouring seats that share a counter of how often they were freed.
--
-- The counters of a tier are unsigned numbers of 32 bits, one for each block of 32 places, each at the
-- place of its block's first seat.

local BLOCK_SEATS = 32

-- The first places of the blocks that some seats lie in, ascending. Seats from `places` on are left
-- out.
local function blocks_of(seats, places)
  local blocks, is_known = {}, {}
  for i = 1, #seats do
    local block = seats[i] - seats[i] % BLOCK_SEATS
    if seats[i] < places and not is_known[block] then
      is_known[block] = true
      blocks[#blocks + 1] = block
    end
  end
  table.sort(blocks)
  return blocks
end

