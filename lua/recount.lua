--- recount.lua: correct how many tickets a buyer has, unless that has changed since the caller looked.
--- @key   sale             hash    epoch, state, opens_ms, closes_ms, limit, order -> its hold, @user -> tickets
--- @arg   epoch            string
--- @arg   user             string
--- @arg   seen             integer
--- @arg   tickets          integer
--- @reply counted
--- @reply changed
--- @reply not_loaded

local sale_key = KEYS[1]
local epoch, user, seen, tickets = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local buyer = '@' .. user
local found = call('HMGET', sale_key, 'epoch', buyer)
local has = tonumber(found[2] or 0)
if found[1] ~= epoch then
  return { 'not_loaded' }
elseif has ~= seen then
  return { 'changed' }
end

add_bought(sale_key, buyer, has, tickets - has)
return { 'counted' }
