// Tollgate's own signature on a thinking block: whose reasoning it is, and the blob its issuer wants back. It is made
// for callers whose dialect needs a signature where the provider gave none or gave another kind.

const prefix = 'tg1.'

export interface OwnSignature {
  /** As in Target: provider, dialect and family of models. */
  readonly issuer: string
  /** What the issuer needs to recognise its reasoning; undefined = it needs nothing, the block was only to be read. */
  readonly blob: string | undefined
}

/** Whose reasoning it is: `provider/dialect/family`. Where one of them differs, it is another's and not given back. */
export function issuerName(provider: string, dialect: string, upstreamModel: string): string {
  return `${provider}/${dialect}/${modelFamily(upstreamModel)}`
}

/** A model's name without its creator, tag and date: a new snapshot of a model reads what the last one wrote. */
function modelFamily(upstreamModel: string): string {
  const name = upstreamModel.toLowerCase().split('/').at(-1) ?? ''
  const bare = name.replace(/^ft:/, '').replace(/[:@].*$/s, '')
  return bare.replace(/(-(latest|preview|\d{8}|\d{4}(-\d{2}){0,2}))+$/, '')
}

export function isOwnSignature(signature: string): boolean {
  return signature.startsWith(prefix)
}

export function writeSignature({ issuer, blob }: OwnSignature): string {
  const text = JSON.stringify(blob === undefined ? [issuer] : [issuer, blob])
  return prefix + Buffer.from(text).toString('base64url')
}

/** undefined if it is not one of ours, or is damaged. */
export function readSignature(signature: string): OwnSignature | undefined {
  if (!isOwnSignature(signature)) return undefined
  try {
    const parts: unknown = JSON.parse(Buffer.from(signature.slice(prefix.length), 'base64url').toString())
    if (!Array.isArray(parts)) return undefined
    const [issuer, blob]: unknown[] = parts
    if (typeof issuer !== 'string' || (blob !== undefined && typeof blob !== 'string')) return undefined
    return { issuer, blob }
  } catch {
    return undefined
  }
}
