// Cuts a stream at every byte in few passes, for tests that each cut leaves the result unchanged.

/** The distance between the cuts of one pass: a cut affects the record it falls in, and few records are longer. */
export const pieceBytes = 192

/**
 * The stream in pieces of 192 bytes behind a first one of `first` bytes. The passes with a `first` from 0 to 191 together
 * cut the stream at every byte once; a pass for each cut would parse it thousands of times.
 */
export function piecesOf(stream: Uint8Array, first: number): Uint8Array[] {
  const pieces = [stream.subarray(0, first)]
  for (let at = first; at < stream.length; at += pieceBytes) pieces.push(stream.subarray(at, at + pieceBytes))
  return pieces
}
