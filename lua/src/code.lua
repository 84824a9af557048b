-- Evaluates compiled expressions, which clients send as bytes. crates/expression/src/code.rs has the same rules; the
-- test vectors in crates/protocol/vectors/code.tsv check both. The value of an expression is an integer. It is nil if
-- the expression has no value, for example after a division by zero.

local memory = require "memory"
local refusal = require "refusal"

local byte, sub, unpack = string.byte, string.sub, string.unpack
local refuse, BAD_ARGUMENT = refusal.refuse, refusal.BAD_ARGUMENT
local LEAST, MOST = math.mininteger, math.maxinteger

local MAX_DEPTH = 200 -- the deepest nesting of operators and reads; the innermost operand counts as one level
-- The first byte of a part of an expression. For an operator, it is UNARY or BINARY plus the operator's number.
local CONSTANT, FRAME, READ, UNARY, BINARY = 0, 1, 2, 0x10, 0x20

-- The types of numbers in memory: how many bytes they have, and the format that decodes them.
local TYPES = {
  [0] = { 1, "<I1" }, { 2, "<I2" }, { 4, "<I4" }, { 1, "<i1" }, { 2, "<i2" }, { 4, "<i4" },
}

-- Reads a number of type `kind`. If `name` is empty, `address` is an address on the bus, otherwise an offset in the
-- memory domain of that name. Returns nil if there is no such memory.
local function read(kind, name, address)
  local length, format = kind[1], kind[2]
  if name == "" then
    if not memory.has_bus(address, length) then
      return nil
    end
    return (unpack(format, emu:readRange(address, length)))
  end
  if address < 0 or not pcall(memory.check_domain, name, address, length) then
    return nil
  end
  return (unpack(format, memory.domain(name):readRange(address, length)))
end

-- The unary operators: minus, bitwise not, logical not.
local UNARIES = {
  [0] = function(a) return a ~= LEAST and -a or nil end,
  function(a) return ~a end,
  function(a) return a == 0 and 1 or 0 end,
}

local function truth(is_true)
  return is_true and 1 or 0
end

-- Whether the product of two integers fits into 64 bits.
local function fits(a, b)
  if a == 0 or b == 0 then
    return true
  end
  local product = a * b
  return not (a == -1 and b == LEAST or b == -1 and a == LEAST) and product // b == a and product % b == 0
end

-- Returns the quotient, rounded towards 0, and the remainder; nil if the division is impossible.
local function divide(a, b)
  if b == 0 or a == LEAST and b == -1 then
    return nil
  end
  local quotient, rest = a // b, a % b
  if rest ~= 0 and (rest ~ a) < 0 then
    quotient, rest = quotient + 1, rest - b
  end
  return quotient, rest
end

-- The binary operators from number 2 on. `binary` implements `or` (0) and `and` (1).
local BINARIES = {
  function(a, b) return truth(a == b) end,
  function(a, b) return truth(a ~= b) end,
  function(a, b) return truth(a < b) end,
  function(a, b) return truth(a <= b) end,
  function(a, b) return truth(a > b) end,
  function(a, b) return truth(a >= b) end,
  function(a, b) return a | b end,
  function(a, b) return a ~ b end,
  function(a, b) return a & b end,
  function(a, b)
    if b < 0 or b > 63 then
      return nil
    end
    local shifted = a << b
    -- 2^63 does not fit into an integer, so the division by it has two steps.
    local back = shifted // (1 << math.min(b, 62)) // (b == 63 and 2 or 1)
    return back == a and shifted or nil
  end,
  function(a, b)
    if b < 0 or b > 63 then
      return nil
    end
    -- With b = 63, only the sign is left. Lua's `>>` would not keep the sign, so this divides.
    return b == 63 and -truth(a < 0) or a // (1 << b)
  end,
  function(a, b)
    if b > 0 and a > MOST - b or b < 0 and a < LEAST - b then
      return nil
    end
    return a + b
  end,
  function(a, b)
    if b < 0 and a > MOST + b or b > 0 and a < LEAST + b then
      return nil
    end
    return a - b
  end,
  function(a, b) return fits(a, b) and a * b or nil end,
  function(a, b) return (divide(a, b)) end,
  function(a, b) return (select(2, divide(a, b))) end,
}

local OR, AND = 0, 1

-- Returns a function that computes a binary operator. For `or` and `and`, it computes the right side only if the left
-- side does not decide the result.
local function binary(operator, left, right)
  local apply = BINARIES[operator - 1]
  local decides = operator == OR -- for `or`, a true left side decides the result; for `and`, a false one
  if apply then
    return function(frame)
      local a = left(frame)
      local b = a and right(frame)
      return b and apply(a, b)
    end
  end
  return function(frame)
    local a = left(frame)
    if not a then
      return nil
    elseif (a ~= 0) == decides then
      return truth(decides)
    end
    local b = right(frame)
    return b and truth(b ~= 0)
  end
end

local function malformed(place)
  refuse(BAD_ARGUMENT, "%s: these bytes are not an expression", place)
end

-- Decodes the part of an expression that begins at `at`. Returns a function that computes the part's value from the
-- frame counter, and the position after the part.
local function part(self, at, depth)
  local bytes = self.bytes
  local tag = byte(bytes, at)
  if depth == MAX_DEPTH then
    refuse(BAD_ARGUMENT, "%s: %d or more operators are nested; use fewer, or group them with brackets", self.place, MAX_DEPTH)
  elseif not tag then
    malformed(self.place)
  elseif tag == CONSTANT then
    if at + 8 > #bytes then
      malformed(self.place)
    end
    local number = unpack("<i8", bytes, at + 1)
    return function() return number end, at + 9
  elseif tag == FRAME then
    return function(frame) return frame end, at + 1
  elseif tag == READ then
    local kind, length = TYPES[byte(bytes, at + 1) or -1], byte(bytes, at + 2)
    if not kind or not length or at + 2 + length > #bytes then
      malformed(self.place)
    end
    local name = sub(bytes, at + 3, at + 2 + length)
    local inner = at + 3 + length
    local address, next_at = part(self, inner, depth + 1)
    if byte(bytes, inner) == CONSTANT then
      table.insert(self.constant_reads, { name = name, address = address(), length = kind[1] })
    end
    return function(frame)
      local from = address(frame)
      return from and read(kind, name, from)
    end, next_at
  elseif UNARIES[tag - UNARY] then
    local apply = UNARIES[tag - UNARY]
    local of, next_at = part(self, at + 1, depth + 1)
    return function(frame)
      local value = of(frame)
      return value and apply(value)
    end, next_at
  elseif tag == BINARY + OR or tag == BINARY + AND or BINARIES[tag - BINARY - 1] then
    local left, middle = part(self, at + 1, depth + 1)
    local right, next_at = part(self, middle, depth + 1)
    return binary(tag - BINARY, left, right), next_at
  end
  malformed(self.place)
end

local code = {}

-- Decodes an expression. Returns a function that computes its value from the frame counter. `place` names the
-- expression in refusals. An expression that reads from a constant address where there is no memory is refused too.
function code.compile(bytes, place)
  local self = { bytes = bytes, place = place, constant_reads = {} }
  local value, next_at = part(self, 1, 0)
  if next_at ~= #bytes + 1 then
    malformed(place)
  end
  for _, range in ipairs(self.constant_reads) do
    memory.check(place, range.name, range.address, range.length)
  end
  return value
end

-- Returns the current value of a compiled expression as an address on the bus. Raises a refusal unless the console has
-- `length` bytes there and, if `is_write`, they can be written.
function code.address(value, frame, length, is_write)
  local address = value(frame)
  if not address or address < 0 or address > 0xFFFFFFFF then
    refuse(BAD_ARGUMENT, "address %s at the moment: a pointer in it leads to no memory, or its value is not a number "
      .. "from 0 to 4294967295", address and "is " .. address or "has no value")
  end
  memory.check_bus(address, length, is_write)
  return address
end

-- Checks an expression whose value will be an address, before it is used. Raises a refusal if it cannot be compiled, or
-- if it is a constant and `code.address` would refuse it.
function code.check_address(bytes, length, is_write)
  local value = code.compile(bytes, "address")
  if byte(bytes) == CONSTANT then
    code.address(value, 0, length, is_write)
  end
end

local MOST_EXPRESSIONS = 256

-- Compiles all expressions in the argument of the operation `evaluate`. Returns a list of functions.
function code.compile_all(expressions)
  local values, at = {}, 1
  while at <= #expressions do
    if #values == MOST_EXPRESSIONS then
      refuse(BAD_ARGUMENT, "expressions: more than %d; evaluate fewer at a time", MOST_EXPRESSIONS)
    end
    local place = ("expressions[%d]"):format(#values)
    local fine, bytes, next_at = pcall(unpack, "<s2", expressions, at)
    if not fine then
      malformed(place)
    end
    values[#values + 1] = code.compile(bytes, place)
    at = next_at
  end
  return values
end

-- Evaluates all expressions in the argument of the operation `evaluate`. Returns 9 bytes for each: whether it has a
-- value, and the value.
function code.evaluate(expressions, frame)
  local results = {}
  for index, value in ipairs(code.compile_all(expressions)) do
    local number = value(frame)
    results[index] = string.pack("<I1i8", number and 1 or 0, number or 0)
  end
  return table.concat(results)
end

return code
