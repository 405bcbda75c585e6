-- give_back.lua: give a hold back if it still is what the caller saw.

local FIRST_LINE_KEY = 3

-- Frees every seat of the hold that is not sold, and that `is_lost`, a set of 'tier,leg,seat', does
-- not name. Answers `done`, or why nothing was done.
local function give_back(done, is_lost)
  local sale_key, due_key = KEYS[1], KEYS[2]
  local order, seen = ARGV[1], ARGV[2]
  local _, _, tickets, packed, user = string.match(seen, RECORD)
  local lines = tickets and unpack_lines(packed)
  if not lines then
    return redis.error_reply('CONTRACT the hold record is malformed')
  end
  local buyer = '@' .. user
  local found = call('HMGET', sale_key, order, buyer)
  local record, had = found[1], found[2]
  if not record then
    return { 'not_held' }
  elseif record ~= seen then
    return { 'changed' }
  end

  local writes = {}
  local grids = each_tier(lines, FIRST_LINE_KEY, function(taken_key, sold_key, line, grid)
    local runs
    if next(is_lost) then
      runs = {}
      for leg = line.from, line.to - 1 do
        local mine = {}
        for _, seat in ipairs(line.seats) do
          if not is_lost[line.tier .. ',' .. leg .. ',' .. seat] then
            mine[#mine + 1] = seat
          end
        end
        for _, first_or_count in ipairs(runs_of(mine, grid.places, grid.legs, leg, leg + 1)) do
          runs[#runs + 1] = first_or_count
        end
      end
    else
      runs = runs_of_line(line, grid)
    end
    if #runs > 0 then
      writes[#writes + 1] = { taken_key, freeing(taken_key, sold_key, runs) }
    end
  end)

  for _, write in ipairs(writes) do
    write_bits(write[1], write[2])
  end
  for i, line in ipairs(lines) do
    local grid = grids[i]
    if grid then
      count_freed(KEYS[grid.key], KEYS[grid.key + 1], grid, line.seats)
    end
  end
  call('HDEL', sale_key, order)
  call('ZREM', due_key, order)
  add_bought(sale_key, buyer, had, -tickets)
  return { done }
end

