// AWS's binary frames, written as the format's documentation has them, for tests that play such a host.

/** One frame; the headers are texts. */
export function eventFrame(headers: Readonly<Record<string, string>>, payload: string | Uint8Array): Uint8Array {
  const written = Object.entries(headers).map(([name, value]) => {
    const length = Buffer.alloc(2)
    length.writeUInt16BE(Buffer.byteLength(value))
    return Buffer.concat([Buffer.from([name.length]), Buffer.from(name), Buffer.from([7]), length, Buffer.from(value)])
  })
  const head = Buffer.concat(written)
  const body = Buffer.from(payload)
  const prelude = Buffer.alloc(8)
  prelude.writeUInt32BE(12 + head.length + body.length + 4, 0)
  prelude.writeUInt32BE(head.length, 4)
  const before = Buffer.concat([prelude, crcOf(prelude), head, body])
  return Buffer.concat([before, crcOf(before)])
}

function crcOf(bytes: Uint8Array): Buffer {
  const crc = Buffer.alloc(4)
  crc.writeUInt32BE(Bun.hash.crc32(bytes))
  return crc
}

/** One event of a dialect, as a stream of InvokeModel carries it. */
export function chunkFrame(event: object): Uint8Array {
  const bytes = Buffer.from(JSON.stringify(event)).toString('base64')
  const headers = { ':event-type': 'chunk', ':content-type': 'application/json', ':message-type': 'event' }
  return eventFrame(headers, JSON.stringify({ bytes, p: 'abcdef' }))
}
