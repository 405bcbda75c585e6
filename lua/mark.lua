--- mark.lua: give a hold back if it still is what the caller saw, but leave taken what other orders own.
--- @key   sale             hash    loaded (its epoch), state, opens_ms, closes_ms, limit, order -> its hold, @user -> tickets
--- @key   due              zset    orders by deadline
--- @key   tier[line]       hash    rows, row_bytes, legs, freed, search:journey -> first row that may hold it, or -
--- @key   freed[line]      counters  how often seats of each block of 32 were given back
--- @key   taken[line]      bitmap  1 where a seat is held, sold or not for sale on a leg
--- @key   sold[line]       bitmap  1 where a seat is sold on a leg
--- @arg   order            string
--- @arg   record           string  deadline|content|tickets|lines|user, as the caller saw it
--- @arg   lost             string  tier,leg,seat joined by ;
--- @reply marked
--- @reply not_held
--- @reply changed

local is_lost = {}
for seat_leg in string.gmatch(ARGV[3], '[^;]+') do
  is_lost[seat_leg] = true
end
return give_back('marked', is_lost)
