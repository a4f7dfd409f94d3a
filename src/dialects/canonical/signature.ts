// Tollgate's own signature on a thinking block. It names the issuer of the reasoning and holds the data that the issuer
// wants back. It is created where the caller's dialect requires a signature and the provider gave none, or one of
// another kind.

const prefix = 'tg1.'

export interface OwnSignature {
  /** As in Target: provider, dialect and model family. */
  readonly issuer: string
  /** The issuer's data; undefined = none is needed, the block was only for display. */
  readonly blob: string | undefined
}

/** `provider/dialect/family`. Reasoning is only sent back to the same issuer. */
export function issuerName(provider: string, dialect: string, upstreamModel: string): string {
  return `${provider}/${dialect}/${modelFamily(upstreamModel)}`
}

/**
 * The model name without creator, tag and date, because a new snapshot of a model accepts the reasoning of the previous
 * one.
 */
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

/** undefined if it is not ours or is damaged. */
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

/** The data of our signature, if `issuer` is the one it names; otherwise undefined. */
export function blobFor(issuer: string, signature: string | undefined): string | undefined {
  const own = readSignature(signature ?? '')
  return own?.issuer === issuer ? own.blob : undefined
}

/** Whether it is our signature without data: the block was only for display. */
export function isDisplayOnly(signature: string | undefined): boolean {
  const own = readSignature(signature ?? '')
  return own !== undefined && own.blob === undefined
}
