// Looks at four bytes of a JSON string at once: whether one of them ends plain text.

export const topBits = 0x80808080

/**
 * Has a top bit set if one of four bytes is a control character, a quote or a backslash; its other bits mean nothing.
 * Subtracting n from each byte sets the top bit of a byte below n; the mask leaves out bytes that had it set before.
 */
export function specialMarks(four: number): number {
  return ((four - 0x20202020) | ((four ^ 0x22222222) - 0x01010101) | ((four ^ 0x5c5c5c5c) - 0x01010101)) & ~four
}
