--- load.lua: start a sale, start it again after Redis lost it, or replace its terms. Everything at once:
--- nobody sees half a sale, and whoever finds the epoch finds all of it.
--- @key   sale             hash    epoch, state, opens_ms, closes_ms, limit, order -> its hold, @user -> tickets
--- @key   due              zset    orders by deadline
--- @key   scratch          bitmap
--- @key   tier[tier]       hash    rows, row_bytes, legs, freed, search:journey -> first row that may hold it, or -
--- @key   taken[tier,leg]  bitmap  1 where a seat is held, sold or not for sale
--- @key   sold[tier,leg]   bitmap  1 where a seat is sold
--- @key   old[old]         any     what the load before has written for its tiers
--- @arg   expected         string  the epoch that Redis should have; empty if none
--- @arg   epoch            string  the epoch from now on
--- @arg   state            string  open | paused
--- @arg   opens_ms         integer
--- @arg   closes_ms        integer
--- @arg   limit            integer
--- @arg   legs             integer
--- @arg   old_tiers        string  the field tiers that the old keys were derived from; empty if none
--- @arg   tiers            string  tier:legs joined by ;
--- @arg   tier_count       integer
--- @arg   hold_count       integer
--- @arg   bought_count     integer
--- @arg   rows[tier]       integer
--- @arg   row_bytes[tier]  integer
--- @arg   leg_count[tier]  integer
--- @arg   freed[tier]      integer
--- @arg   taken[tier,leg]  bitmap
--- @arg   sold[tier,leg]   bitmap
--- @arg   order[hold]      string
--- @arg   record[hold]     string
--- @arg   buyer[buyer]     string  @user
--- @arg   tickets[buyer]   integer
--- @reply loaded
--- @reply updated
--- @reply stale            epoch
--- @reply absent
--- @reply other_tiers

local FIRST_TIER_KEY, FIRST_TIER_ARG = 4, 13
-- Lua's stack holds some thousand values.
local MAX_VALUES = 2000

local sale_key, due_key, scratch_key = KEYS[1], KEYS[2], KEYS[3]
local expected, epoch, state, opens_ms, closes_ms, limit, legs = unpack(ARGV, 1, 7)
local old_tiers, tiers = ARGV[8], ARGV[9]
local tier_count, hold_count, bought_count =
  tonumber(ARGV[10]), tonumber(ARGV[11]), tonumber(ARGV[12])

local function write_terms()
  call('HSET', sale_key, 'state', state, 'opens_ms', opens_ms, 'closes_ms', closes_ms,
    'limit', limit, 'legs', legs, 'tiers', tiers, 'epoch', epoch)
end

local sale = call('HMGET', sale_key, 'epoch', 'tiers')
if sale[1] == epoch then
  tiers = sale[2]
  write_terms()
  return { 'updated' }
elseif (sale[1] or '') ~= expected then
  return sale[1] and { 'stale', sale[1] } or { 'absent' }
elseif (sale[2] or '') ~= old_tiers then
  return { 'other_tiers' }
end

-- Check the shape of what was given before anything is written.
local arg = FIRST_TIER_ARG
local grids = {}
for index = 1, tier_count do
  local rows, row_bytes, leg_count, freed = unpack(ARGV, arg, arg + 3)
  local bytes = tonumber(rows) * tonumber(row_bytes)
  grids[index] = {
    rows = rows, row_bytes = row_bytes, legs = tonumber(leg_count), freed = freed, arg = arg + 4,
  }
  arg = arg + 4 + 2 * leg_count
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

-- From here on nobody knows the sale, until the epoch is written last.
call('DEL', sale_key, due_key, scratch_key)
local key = FIRST_TIER_KEY
for _, grid in ipairs(grids) do
  key = key + 1 + 2 * grid.legs
end
for old = key, #KEYS do
  call('DEL', KEYS[old])
end
key = FIRST_TIER_KEY
for _, grid in ipairs(grids) do
  call('DEL', KEYS[key])
  call('HSET', KEYS[key], 'rows', grid.rows, 'row_bytes', grid.row_bytes, 'legs', grid.legs,
    'freed', grid.freed)
  for bitmap = 0, 2 * grid.legs - 1 do
    call('SET', KEYS[key + 1 + bitmap], ARGV[grid.arg + bitmap])
  end
  key = key + 1 + 2 * grid.legs
end
for start = first_hold, first_buyer - 1, MAX_VALUES do
  local last = math.min(start + MAX_VALUES, first_buyer) - 1
  local deadlines = {}
  for order = start, last, 2 do
    deadlines[#deadlines + 1] = string.match(ARGV[order + 1], '^-?%d+')
    deadlines[#deadlines + 1] = ARGV[order]
  end
  call('HSET', sale_key, unpack(ARGV, start, last))
  call('ZADD', due_key, unpack(deadlines))
end
for start = first_buyer, #ARGV, MAX_VALUES do
  call('HSET', sale_key, unpack(ARGV, start, math.min(start + MAX_VALUES - 1, #ARGV)))
end
write_terms()
return { 'loaded' }
