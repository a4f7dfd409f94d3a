// Shrinks a screenshot for the repository: at most 256 colours, one byte per pixel. Reads only what Chromium writes: 8 bits,
// RGB or RGBA, not interlaced.

import { crc32, deflateSync, inflateSync } from 'node:zlib'

const signature = Uint8Array.of(137, 80, 78, 71, 13, 10, 26, 10)
const coloursMax = 256

export function shrinkPng(png: Uint8Array): Uint8Array {
  const { width, height, pixels } = decode(png)
  const palette = choosePalette(countColours(pixels))
  const nearest = new Map<number, number>()
  const rows = new Uint8Array((width + 1) * height)
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      const colour = pixels[y * width + x] ?? 0
      let index = nearest.get(colour)
      if (index === undefined) {
        index = nearestIndex(palette, colour)
        nearest.set(colour, index)
      }
      rows[y * (width + 1) + 1 + x] = index
    }
  }
  const header = new Uint8Array(13)
  const view = new DataView(header.buffer)
  view.setUint32(0, width)
  view.setUint32(4, height)
  // Eight bits, a palette.
  header.set([8, 3, 0, 0, 0], 8)
  return Buffer.concat([
    signature,
    chunk('IHDR', header),
    chunk('PLTE', Uint8Array.from(palette.flatMap((colour) => [colour >> 16, (colour >> 8) & 255, colour & 255]))),
    chunk('IDAT', deflateSync(rows, { level: 9, memLevel: 9 })),
    chunk('IEND', new Uint8Array()),
  ])
}

interface Picture {
  readonly width: number
  readonly height: number
  /** 0xRRGGBB each; pages have no transparency. */
  readonly pixels: Uint32Array
}

function decode(png: Uint8Array): Picture {
  const view = new DataView(png.buffer, png.byteOffset, png.byteLength)
  const [width, height] = [view.getUint32(16), view.getUint32(20)]
  const channels = png[25] === 6 ? 4 : 3
  const parts: Uint8Array[] = []
  for (let at = 8; at < png.length; ) {
    const length = view.getUint32(at)
    const type = String.fromCharCode(...png.subarray(at + 4, at + 8))
    if (type === 'IDAT') parts.push(png.subarray(at + 8, at + 8 + length))
    at += length + 12
  }
  const raw = inflateSync(Buffer.concat(parts))
  const stride = width * channels
  const pixels = new Uint32Array(width * height)
  let above = new Uint8Array(stride)
  for (let y = 0; y < height; y++) {
    const start = y * (stride + 1)
    const line = Uint8Array.from(raw.subarray(start + 1, start + 1 + stride))
    unfilter(raw[start] ?? 0, line, above, channels)
    for (let x = 0; x < width; x++) {
      const at = x * channels
      pixels[y * width + x] = ((line[at] ?? 0) << 16) | ((line[at + 1] ?? 0) << 8) | (line[at + 2] ?? 0)
    }
    above = line
  }
  return { width, height, pixels }
}

/** The five filters of the format. */
function unfilter(filter: number, line: Uint8Array, above: Uint8Array, channels: number): void {
  for (let at = 0; at < line.length; at++) {
    const left = at < channels ? 0 : (line[at - channels] ?? 0)
    const up = above[at] ?? 0
    const corner = at < channels ? 0 : (above[at - channels] ?? 0)
    const guess = [0, left, up, (left + up) >> 1, paeth(left, up, corner)][filter] ?? 0
    line[at] = ((line[at] ?? 0) + guess) & 255
  }
}

function paeth(left: number, up: number, corner: number): number {
  const sum = left + up - corner
  const [a, b, c] = [Math.abs(sum - left), Math.abs(sum - up), Math.abs(sum - corner)]
  return a <= b && a <= c ? left : b <= c ? up : corner
}

function countColours(pixels: Uint32Array): ReadonlyMap<number, number> {
  const counts = new Map<number, number>()
  for (const colour of pixels) counts.set(colour, (counts.get(colour) ?? 0) + 1)
  return counts
}

/** The exact colours of areas, and a selection of the shades at the edges of letters. */
function choosePalette(counts: ReadonlyMap<number, number>): readonly number[] {
  const byCount = [...counts].sort((a, b) => b[1] - a[1]).map(([colour]) => colour)
  if (byCount.length <= coloursMax) return byCount
  const areas = byCount.slice(0, coloursMax / 2)
  for (let gap = 6; ; gap += 3) {
    const palette = [...areas]
    for (const colour of byCount.slice(areas.length)) {
      if (palette.every((chosen) => distance(chosen, colour) >= gap * gap)) palette.push(colour)
      if (palette.length > coloursMax) break
    }
    if (palette.length <= coloursMax) return palette
  }
}

function nearestIndex(palette: readonly number[], colour: number): number {
  let best = 0
  let least = Number.POSITIVE_INFINITY
  for (const [index, chosen] of palette.entries()) {
    const far = distance(chosen, colour)
    if (far < least) [best, least] = [index, far]
  }
  return best
}

function distance(a: number, b: number): number {
  const [red, green, blue] = [(a >> 16) - (b >> 16), ((a >> 8) & 255) - ((b >> 8) & 255), (a & 255) - (b & 255)]
  return red * red + green * green + blue * blue
}

function chunk(type: string, data: Uint8Array): Uint8Array {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data])
  const out = Buffer.alloc(body.length + 8)
  out.writeUInt32BE(data.length, 0)
  body.copy(out, 4)
  out.writeUInt32BE(crc32(body), body.length + 4)
  return out
}
