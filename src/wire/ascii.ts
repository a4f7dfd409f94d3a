// The bytes that JSON and SSE are built from, by name, as numbers: hot loops compare them with what stands in a buffer.

export const tab = 0x09
export const lineFeed = 0x0a
export const carriageReturn = 0x0d
export const space = 0x20
export const quote = 0x22
export const plus = 0x2b
export const comma = 0x2c
export const minus = 0x2d
export const dot = 0x2e
export const zero = 0x30
export const nine = 0x39
export const colon = 0x3a
export const openBracket = 0x5b
export const backslash = 0x5c
export const closeBracket = 0x5d
export const lowerE = 0x65
export const lowerF = 0x66
export const lowerN = 0x6e
export const lowerT = 0x74
export const lowerU = 0x75
export const openBrace = 0x7b
export const closeBrace = 0x7d

export function isDigit(byte: number): boolean {
  return byte >= zero && byte <= nine
}

export function isHex(byte: number): boolean {
  const lower = byte | 0x20
  return isDigit(byte) || (lower >= 0x61 && lower <= 0x66)
}
