-- best_seats.lua: a script to compare with, not one of ours. Takes the best neighbouring free seats of
-- a tier that is kept as one hash, name of a seat -> JSON: the dearest first, then by row and place.
local key, wanted, order = KEYS[1], tonumber(ARGV[1]), ARGV[2]

local free = {}
for _, value in ipairs(redis.call('HVALS', key)) do
  local seat = cjson.decode(value)
  if seat.state == 'free' then
    free[#free + 1] = seat
  end
end
table.sort(free, function(one, other)
  if one.price ~= other.price then
    return one.price > other.price
  elseif one.row ~= other.row then
    return one.row < other.row
  end
  return one.place < other.place
end)

local first
local run = 0
for i, seat in ipairs(free) do
  local before = free[i - 1]
  if run > 0 and before.row == seat.row and before.place + 1 == seat.place then
    run = run + 1
  else
    run = 1
  end
  if run == wanted then
    first = i + 1 - wanted
    break
  end
end
if not first then
  return {}
end

local names = {}
for i = 1, wanted do
  local seat = free[first + i - 1]
  seat.state, seat.order = 'held', order
  redis.call('HSET', key, seat.name, cjson.encode(seat))
  names[i] = seat.name
end
return names
