// The body of a request in one spelling, for finding words of it that a provider quotes: JSON has more than one way to
// write a letter. Made of bytes in one go, since a caller may send megabytes of nothing but escapes.

/** UTF-8 without escapes and in small letters, as far as ASCII has them; only to be searched for `plainWords`. */
export function plainBody(sent: Uint8Array): Buffer {
  const plain = withoutEscapes(sent)
  return Buffer.from(plain.buffer, plain.byteOffset, plain.byteLength)
}

/** Words in the same spelling. */
export function plainWords(words: string): string {
  return words.replace(/[A-Z]+/g, (letters) => letters.toLowerCase())
}

const backslash = 0x5c
const letterU = 0x75
/** \b \f \n \r \t; all others stand for themselves. */
const controls: Readonly<Record<number, number>> = { 98: 0x08, 102: 0x0c, 110: 0x0a, 114: 0x0d, 116: 0x09 }

/** An escape is longer than what it stands for, so that it always fits. */
function withoutEscapes(sent: Uint8Array): Uint8Array {
  const plain = new Uint8Array(sent.length)
  let length = 0
  let at = 0
  while (at < sent.length) {
    const byte = sent[at] ?? 0
    if (byte !== backslash) {
      plain[length++] = smallLetter(byte)
      at++
      continue
    }
    const sign = sent[at + 1] ?? 0
    const unit = sign === letterU ? hexAt(sent, at + 2) : -1
    if (unit === -1) {
      plain[length++] = controls[sign] ?? smallLetter(sign)
      at += 2
      continue
    }
    at += 6
    const low = isHighHalf(unit) && sent[at] === backslash && sent[at + 1] === letterU ? hexAt(sent, at + 2) : -1
    const isPair = low >= 0xdc00 && low <= 0xdfff
    if (isPair) at += 6
    length = putCharacter(plain, length, isPair ? 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00) : unit)
  }
  return plain.subarray(0, length)
}

function smallLetter(byte: number): number {
  return byte >= 0x41 && byte <= 0x5a ? byte | 0x20 : byte
}

function isHighHalf(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff
}

/** Four hexadecimal digits; -1 = something else stands there. */
function hexAt(bytes: Uint8Array, at: number): number {
  let value = 0
  for (let i = at; i < at + 4; i++) {
    const digit = digitOf(bytes[i] ?? 0)
    if (digit === -1) return -1
    value = value * 16 + digit
  }
  return value
}

function digitOf(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30
  const small = byte | 0x20
  return small >= 0x61 && small <= 0x66 ? small - 0x57 : -1
}

/** As UTF-8; half a pair as the sign that stands for what is broken, as everywhere. */
function putCharacter(bytes: Uint8Array, length: number, code: number): number {
  const whole = code >= 0xd800 && code <= 0xdfff ? 0xfffd : code
  if (whole < 0x80) {
    bytes[length] = smallLetter(whole)
    return length + 1
  }
  const more = whole < 0x800 ? 1 : whole < 0x10000 ? 2 : 3
  const lead = [0, 0xc0, 0xe0, 0xf0][more] ?? 0
  bytes[length] = lead | (whole >> (6 * more))
  for (let i = 1; i <= more; i++) bytes[length + i] = 0x80 | ((whole >> (6 * (more - i))) & 0x3f)
  return length + more + 1
}
