// What media that came by value really are. Labels are often wrong and providers refuse a wrong one, so the bytes
// decide; a medium is never decoded beyond its first bytes.

/** [media type, its first bytes as Latin-1; `?` stands for any byte]. */
const signatures: readonly (readonly [string, string])[] = [
  ['image/png', '\x89PNG\r\n\x1a\n'],
  ['image/jpeg', '\xff\xd8\xff'],
  ['image/gif', 'GIF8'],
  ['image/webp', 'RIFF????WEBP'],
  ['application/pdf', '%PDF'],
]

/** The media type by its bytes; undefined = none of png, jpeg, gif, webp and pdf. */
export function sniffMediaType(base64: string): string | undefined {
  const head = Buffer.from(base64.slice(0, 24), 'base64').toString('latin1')
  return signatures.find(([, signature]) => startsLike(head, signature))?.[0]
}

/** The same, or else what the label says, in its proper spelling. */
export function knownMediaType(base64: string, label: string): string {
  const spelt = label.trim().toLowerCase()
  return sniffMediaType(base64) ?? (spelt === 'image/jpg' ? 'image/jpeg' : spelt)
}

function startsLike(head: string, signature: string): boolean {
  if (head.length < signature.length) return false
  for (let i = 0; i < signature.length; i++) {
    if (signature[i] !== '?' && signature[i] !== head[i]) return false
  }
  return true
}

export interface DataUrl {
  /** Lower case, without parameters. */
  readonly mediaType: string
  readonly base64: string
}

/** undefined if it is not a data URL or its data is not base64. */
export function readDataUrl(url: string): DataUrl | undefined {
  const comma = url.indexOf(',')
  if (comma === -1 || url.slice(0, 5).toLowerCase() !== 'data:') return undefined
  const [mediaType = '', ...parameters] = url.slice(5, comma).toLowerCase().split(';')
  if (parameters.at(-1)?.trim() !== 'base64') return undefined
  return { mediaType: mediaType.trim() || 'text/plain', base64: url.slice(comma + 1) }
}

export function isWebUrl(url: string): boolean {
  return /^https?:\/\//i.test(url)
}
