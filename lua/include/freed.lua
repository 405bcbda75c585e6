-- freed.lua: what becomes of a tier in which seats were freed.
--
-- Beside its shape, the tier's hash remembers where searches left off. A field 'search:journey' names
-- a kind of search; its value is the first row that may still hold what is searched for, or '-' if
-- none does. Seats that are taken can only move that row on, so the memory stays true until seats are
-- freed. The fields of the shape have no ':'. One of them, 'freed', is 0: releases that counted there
-- find it.

local SHAPE_FIELDS = 4
-- Beyond this number of searches it is cheaper to forget them than to go through them.
local MAX_SEARCHES = 32

-- Counts that seats were freed, for each of their blocks, and has searches go back to them. Their first
-- row may hold anything again, and so may the rows before it from which a pattern reaches that far
-- ('p<rows it reaches>...').
local function count_freed(tier_key, freed_key, grid, seats)
  local blocks = blocks_of(seats, grid.places)
  if not blocks[1] then
    return
  end
  local counting = {}
  for i = 1, #blocks do
    local n = 4 * i
    counting[n - 3], counting[n - 2], counting[n - 1], counting[n] = 'INCRBY', 'u32', blocks[i], 1
  end
  call('BITFIELD', freed_key, unpack(counting))

  local searches = call('HLEN', tier_key) - SHAPE_FIELDS
  if searches > MAX_SEARCHES then
    call('UNLINK', tier_key)
    call('HSET', tier_key, 'rows', grid.rows, 'row_bytes', grid.row_bytes, 'legs', grid.legs,
      'freed', 0)
    return
  end
  local seat = seats[1]
  for i = 2, #seats do
    seat = math.min(seat, seats[i])
  end
  local row = floor(seat / (grid.row_bytes * 8))
  local changed = {}
  local fields = searches > 0 and call('HGETALL', tier_key) or {}
  for i = 1, #fields, 2 do
    if string.find(fields[i], ':', 1, true) then
      local reach = tonumber(string.match(fields[i], '^p(%d+)') or 0)
      local first = math.max(row - reach, 0)
      if fields[i + 1] == '-' or tonumber(fields[i + 1]) > first then
        changed[#changed + 1] = fields[i]
        changed[#changed + 1] = first
      end
    end
  end
  if changed[1] then
    call('HSET', tier_key, unpack(changed))
  end
end

