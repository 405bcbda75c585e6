-- any_seats.lua: a script to compare with, not one of ours. Takes any free seats of a tier that is
-- kept as one hash, name of a seat -> JSON.
local key, wanted, order = KEYS[1], tonumber(ARGV[1]), ARGV[2]

local chosen = {}
for _, value in ipairs(redis.call('HVALS', key)) do
  local seat = cjson.decode(value)
  if seat.state == 'free' then
    chosen[#chosen + 1] = seat
    if #chosen == wanted then
      break
    end
  end
end
if #chosen < wanted then
  return {}
end

local names = {}
for i, seat in ipairs(chosen) do
  seat.state, seat.order = 'held', order
  redis.call('HSET', key, seat.name, cjson.encode(seat))
  names[i] = seat.name
end
return names
