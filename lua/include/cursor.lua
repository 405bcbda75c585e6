-- cursor.lua: where searches of a tier left off.
--
-- A field names a kind of search and its journey; its value is the first row that may still hold
-- what is searched for, or '-' if none does. Seats that are taken can only move that row on, so the
-- memory stays true until seats are freed.

-- Beyond so many fields it is cheaper to forget than to go through them.
local MOST_FIELDS = 32

-- The first row in which a seat was freed may hold anything again, and so may the rows before it
-- from which a pattern reaches that far ('p<rows it reaches>...').
local function lower_cursors(cursor_key, row)
  local fields = redis.call('HLEN', cursor_key)
  if fields == 0 then
    return
  end
  if fields > MOST_FIELDS then
    redis.call('DEL', cursor_key)
    return
  end
  local cursors = redis.call('HGETALL', cursor_key)
  local lowered = {}
  for i = 1, #cursors, 2 do
    local reach = tonumber(string.match(cursors[i], '^p(%d+)') or 0)
    local first = math.max(row - reach, 0)
    local remembered = cursors[i + 1]
    if remembered == '-' or tonumber(remembered) > first then
      lowered[#lowered + 1] = cursors[i]
      lowered[#lowered + 1] = first
    end
  end
  if #lowered > 0 then
    redis.call('HSET', cursor_key, unpack(lowered))
  end
end

-- The first row of some seats.
local function first_row(seats, grid)
  return math.floor(math.min(unpack(seats)) / (grid.row_bytes * 8))
end

