--- load.lua: start a sale, start it again after Redis lost it, or replace its terms.
---
--- A load comes in parts, each a call. The first makes Redis forget what it had. From there until the
--- last, the sale has no epoch, so that every other script refuses it: its bitmaps are put in their
--- places, its holds and buyers aside, under keys that no other script knows. The last part publishes
--- it with two renames. A part that comes twice, or without those before it, writes nothing. Whoever
--- finds the epoch finds all of the sale.
--- @key   sale             hash    epoch, state, opens_ms, closes_ms, limit, order -> its hold, @user -> tickets
--- @key   due              zset    orders by deadline
--- @key   scratch          bitmap
--- @key   loading          hash    load (its epoch), next (place of the part that comes next), tiers; orders and buyers as in sale
--- @key   loading_due      zset    as due
--- @key   tier[tier]       hash    rows, row_bytes, legs, freed, search:journey -> first row that may hold it, or -
--- @key   freed[tier]      counters  how often seats of each block of 32 were given back
--- @key   taken[tier,leg]  bitmap  1 where a seat is held, sold or not for sale
--- @key   sold[tier,leg]   bitmap  1 where a seat is sold
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
--- @arg   left_tiers       string  those of old_tiers whose keys did not fit; empty if all did
--- @arg   tiers            string  tier:legs joined by ;
--- @arg   tier_count       integer
--- @arg   hold_count       integer
--- @arg   bought_count     integer
--- @arg   rows[tier]       integer
--- @arg   row_bytes[tier]  integer
--- @arg   leg_count[tier]  integer
--- @arg   taken[tier,leg]  bitmap
--- @arg   sold[tier,leg]   bitmap
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

local FIRST_TIER_KEY, FIRST_TIER_ARG = 6, 16
-- The keys of a tier before its bitmaps, and its arguments.
local TIER_KEYS, TIER_ARGS = 2, 3

local sale_key, due_key, scratch_key, loading_key, loading_due_key = unpack(KEYS, 1, 5)
local expected, epoch, place, is_last = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4] == '1'
local state, opens_ms, closes_ms, limit, legs = unpack(ARGV, 5, 9)
local old_tiers, left_tiers, tiers = unpack(ARGV, 10, 12)
local tier_count, hold_count, bought_count =
  tonumber(ARGV[13]), tonumber(ARGV[14]), tonumber(ARGV[15])

local function write_terms(key, tiers)
  call('HSET', key, 'state', state, 'opens_ms', opens_ms, 'closes_ms', closes_ms,
    'limit', limit, 'legs', legs, 'tiers', tiers, 'epoch', epoch)
end

local sale = call('HMGET', sale_key, 'epoch', 'tiers')
local loading = call('HMGET', loading_key, 'load', 'next', 'tiers')
local current = sale[1]
-- The place of the part that comes next, if parts of this very load are there.
local comes_next = not current and loading[1] == epoch and tonumber(loading[2])
-- Begun, but more keys were in the way than fit one call.
local is_begun = comes_next == 0 and expected ~= epoch
if current == epoch then
  if is_last then
    write_terms(sale_key, sale[2])
  end
  return { 'updated' }
elseif comes_next and place < comes_next then
  return { 'staged' }
elseif place > 0 and comes_next ~= place then
  return current and { 'stale', current } or { 'absent' }
elseif place == 0 and not is_begun and (current or '') ~= expected then
  return current and { 'stale', current } or { 'absent' }
elseif place == 0 and (sale[2] or loading[3] or '') ~= old_tiers then
  return { 'other_tiers' }
end

-- Check the shape of what was given before anything is written.
local arg = FIRST_TIER_ARG
local grids = {}
for index = 1, tier_count do
  local rows, row_bytes, leg_count = unpack(ARGV, arg, arg + TIER_ARGS - 1)
  local bytes = tonumber(rows) * tonumber(row_bytes)
  grids[index] = {
    rows = rows, row_bytes = row_bytes, legs = tonumber(leg_count), arg = arg + TIER_ARGS,
  }
  arg = arg + TIER_ARGS + 2 * leg_count
  for bitmap = grids[index].arg, arg - 1 do
    if #(ARGV[bitmap] or '') ~= bytes then
      return redis.error_reply('CONTRACT a bitmap is not as long as its tier')
    end
  end
end
local first_hold, first_buyer = arg, arg + 2 * hold_count
if #ARGV ~= first_buyer + 2 * bought_count - 1 then
  return redis.error_reply('CONTRACT the counts differ from what was given')
end
local first_old = FIRST_TIER_KEY
for _, grid in ipairs(grids) do
  first_old = first_old + TIER_KEYS + 2 * grid.legs
end

if place == 0 then
  -- From here on nobody knows the sale.
  call('UNLINK', sale_key, due_key, scratch_key, loading_key, loading_due_key)
  if first_old <= #KEYS then
    call('UNLINK', unpack(KEYS, first_old, #KEYS))
  end
  if left_tiers ~= '' then
    call('HSET', loading_key, 'load', epoch, 'next', 0, 'tiers', left_tiers)
    return { 'other_tiers' }
  end
end
local key = FIRST_TIER_KEY
for _, grid in ipairs(grids) do
  call('UNLINK', KEYS[key], KEYS[key + 1])
  call('HSET', KEYS[key], 'rows', grid.rows, 'row_bytes', grid.row_bytes, 'legs', grid.legs,
    'freed', 0)
  for bitmap = 0, 2 * grid.legs - 1 do
    call('SET', KEYS[key + TIER_KEYS + bitmap], ARGV[grid.arg + bitmap])
  end
  key = key + TIER_KEYS + 2 * grid.legs
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
