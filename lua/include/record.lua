-- record.lua: what is remembered of a hold, as text.

-- The parts of a record: deadline, content, tickets, lines and user. The user comes last because it is
-- free text.
local RECORD = '^(-?%d+)|(%x+)|(%d+)|([^|]*)|(.+)$'

