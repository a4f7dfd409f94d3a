// Tollgate's own signature on a thinking block: whose reasoning it is, and the blob its issuer wants back. It is made
// for callers whose dialect needs a signature where the provider gave none or gave another kind.

const prefix = 'tg1.'

export interface OwnSignature {
  /** `provider/dialect`, as in Target. */
  readonly issuer: string
  /** What the issuer needs to recognise its reasoning; undefined = it needs nothing, the block was only to be read. */
  readonly blob: string | undefined
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
