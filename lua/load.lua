--- load.lua: start a sale, start it again after Redis lost it, or replace its terms.
---
--- A load comes in parts, each a call. The first makes Redis forget what it had. From there until the
--- last, the sale has no epoch, so that every other script refuses it: its bitmaps are put in their
--- places, its holds and buyers aside, under keys that no other script knows. The last part publishes
--- it with two renames. A part that comes twice, or without those before it, writes nothing. Whoever
--- finds the epoch finds all of the sale.
--- @key   sale             hash    loaded (its epoch), state, opens_ms, closes_ms, limit, order -> its hold, @user -> tickets
--- @key   due              zset    orders by deadline
--- @key   loading          hash    load (its epoch), next (place of the part that comes next), tiers; orders and buyers as in sale
--- @key   loading_due      zset    as due
--- @key   tier[tier]       hash    rows, row_bytes, legs, freed, middle (if every row has the same), search:journey -> first row that may hold it, or -
--- @key   freed[tier]      counters  how often seats of each block of 32 were given back
--- @key   taken[tier]      bitmap  1 where a seat is held, sold or not for sale on a leg
--- @key   sold[tier]       bitmap  1 where a seat is sold on a leg
--- @key   middles[tier]    string  twice the column of each row's middle, 16 bits each; none if seats are best at the left
--- @key   old[old]         any     what the load before has written for its tiers
--- @arg   expected         string  the epoch that Redis should have before the first part; empty if none
--- @arg   epoch            string  the epoch from now on
--- @arg   place            integer place of the part, from 0
--- @arg   is_last          integer 1 for the part that publishes the sale, else 0
--- @arg   state            string  open | paused
--- @arg   opens_ms         integer
--- @arg   closes_ms        integer
--- @arg   limit            integer
--- @arg   legs             integer
--- @arg   old_tiers        string  the field tiers that the old keys were derived from; empty if none
--- @arg   tiers            string  tier joined by ;
--- @arg   tier_count       integer
--- @arg   hold_count       integer
--- @arg   bought_count     integer
--- @arg   rows[tier]       integer
--- @arg   row_bytes[tier]  integer
--- @arg   leg_count[tier]  integer
--- @arg   taken[tier]      bitmap
--- @arg   sold[tier]       bitmap
--- @arg   middles[tier]    string  as its key; empty if none
--- @arg   order[hold]      string
--- @arg   record[hold]     string
--- @arg   buyer[buyer]     string  @user
--- @arg   tickets[buyer]   integer
--- @reply staged
--- @reply loaded
--- @reply updated
--- @reply stale            epoch
--- @reply absent
--- @reply other_tiers

local FIRST_TIER_KEY, FIRST_TIER_ARG = 5, 15
-- The keys and the arguments of a tier.
local TIER_KEYS, TIER_ARGS = 5, 6

local sale_key, due_key, loading_key, loading_due_key = unpack(KEYS, 1, 4)
local expected, epoch, place, is_last = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4] == '1'
local state, opens_ms, closes_ms, limit, legs = unpack(ARGV, 5, 9)
local old_tiers, tiers = ARGV[10], ARGV[11]
local tier_count, hold_count, bought_count =
  tonumber(ARGV[12]), tonumber(ARGV[13]), tonumber(ARGV[14])

-- Redis keeps a hash of short values as a list, which every order would go through, until it has hundreds
-- of fields. With one value of more than hash-max-listpack-value bytes it is a table from the start.
local WIDE = string.rep('-', 65)

local function write_terms(key, tiers)
  call('HSET', key, 'state', state, 'opens_ms', opens_ms, 'closes_ms', closes_ms,
    'limit', limit, 'legs', legs, 'tiers', tiers, 'wide', WIDE, 'loaded', epoch)
end

local sale = call('HMGET', sale_key, 'loaded', 'tiers')
local loading = call('HMGET', loading_key, 'load', 'next', 'tiers')
local current = sale[1]
-- The place of the part that comes next, if parts of this very load are there.
local comes_next = not current and loading[1] == epoch and tonumber(loading[2])
if current == epoch then
  if is_last then
    write_terms(sale_key, sale[2])
  end
  return { 'updated' }
elseif comes_next and place < comes_next then
  return { 'staged' }
elseif place > 0 and comes_next ~= place then
  return current and { 'stale', current } or { 'absent' }
elseif place == 0 and (current or '') ~= expected then
  return current and { 'stale', current } or { 'absent' }
elseif place == 0 and (sale[2] or loading[3] or '') ~= old_tiers then
  return { 'other_tiers' }
end

-- Check the shape of what was given before anything is written.
local first_hold = FIRST_TIER_ARG + TIER_ARGS * tier_count
local first_buyer = first_hold + 2 * hold_count
for arg = FIRST_TIER_ARG, first_hold - 1, TIER_ARGS do
  local rows, row_bytes, leg_count, taken, sold, middles = unpack(ARGV, arg, arg + TIER_ARGS - 1)
  local bytes = rows * row_bytes * leg_count
  if #(taken or '') ~= bytes or #(sold or '') ~= bytes then
    return redis.error_reply('CONTRACT a bitmap is not as long as its tier')
  elseif (middles or '') ~= '' and #middles ~= 2 * rows then
    return redis.error_reply('CONTRACT a tier has as many middles as rows, or none')
  end
end
if #ARGV ~= first_buyer + 2 * bought_count - 1 then
  return redis.error_reply('CONTRACT the counts differ from what was given')
end
local first_old = FIRST_TIER_KEY + TIER_KEYS * tier_count

if place == 0 then
  -- From here on nobody knows the sale.
  call('UNLINK', sale_key, due_key, loading_key, loading_due_key)
  if first_old <= #KEYS then
    call('UNLINK', unpack(KEYS, first_old, #KEYS))
  end
end
for index = 0, tier_count - 1 do
  local key, arg = FIRST_TIER_KEY + TIER_KEYS * index, FIRST_TIER_ARG + TIER_ARGS * index
  local tier_key, freed_key, taken_key, sold_key, middles_key = unpack(KEYS, key, key + TIER_KEYS - 1)
  local rows, row_bytes, leg_count, taken, sold, middles = unpack(ARGV, arg, arg + TIER_ARGS - 1)
  call('UNLINK', tier_key, freed_key, middles_key)
  call('HSET', tier_key, 'rows', rows, 'row_bytes', row_bytes, 'legs', leg_count, 'freed', 0)
  call('SET', taken_key, taken)
  call('SET', sold_key, sold)
  local first = string.sub(middles, 1, 2)
  if middles ~= '' then
    call('SET', middles_key, middles)
  end
  if middles == string.rep(first, rows) then
    -- All rows have the same, or none, which is the left edge: a hold reads it with the shape.
    local high, low = string.byte(first, 1, 2)
    call('HSET', tier_key, 'middle', high and 256 * high + low or 0)
  end
end
if hold_count > 0 then
  local deadlines = {}
  for order = first_hold, first_buyer - 1, 2 do
    deadlines[#deadlines + 1] = string.match(ARGV[order + 1], '^-?%d+')
    deadlines[#deadlines + 1] = ARGV[order]
  end
  call('HSET', loading_key, unpack(ARGV, first_hold, first_buyer - 1))
  call('ZADD', loading_due_key, unpack(deadlines))
end
if bought_count > 0 then
  call('HSET', loading_key, unpack(ARGV, first_buyer, #ARGV))
end
local earlier = place > 0 and loading[3] or ''
local joint = earlier ~= '' and tiers ~= '' and ';' or ''
if not is_last then
  call('HSET', loading_key, 'load', epoch, 'next', place + 1, 'tiers', earlier .. joint .. tiers)
  return { 'staged' }
end
call('HDEL', loading_key, 'load', 'next')
write_terms(loading_key, earlier .. joint .. tiers)
call('RENAME', loading_key, sale_key)
if call('ZCARD', loading_due_key) > 0 then
  call('RENAME', loading_due_key, due_key)
end
return { 'loaded' }
