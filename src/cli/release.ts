// The checksums, the signature and the provenance of a release, in formats that other tools read too: SHA256SUMS, an Ed25519
// signature of it (openssl), and a SLSA statement in a signed DSSE envelope (in-toto).

import { createHash, createPublicKey, type KeyObject, sign, verify } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { pipeline } from 'node:stream/promises'
import { z } from 'zod'

export const sumsName = 'SHA256SUMS'
export const signatureName = 'SHA256SUMS.sig'
export const provenanceName = 'tollgate.intoto.jsonl'
const payloadType = 'application/vnd.in-toto+json'

export type Sums = ReadonlyMap<string, string>

export function renderSums(sums: Sums): string {
  return [...sums].map(([name, hash]) => `${hash}  ${name}\n`).join('')
}

/** Undefined if a line is not one of `sha256sum`, or names a file elsewhere. */
export function readSums(text: string): Sums | undefined {
  const lines = text.split('\n').filter((line) => line !== '')
  const rows = lines.map((line) => /^([0-9a-f]{64}) [ *]([^/\\]+)$/.exec(line))
  const sums = new Map(rows.flatMap((row) => (row?.[1] && row[2] ? [[row[2], row[1]] as const] : [])))
  return sums.size === lines.length && sums.size > 0 ? sums : undefined
}

export async function hashOf(file: string): Promise<string> {
  const hash = createHash('sha256')
  await pipeline(createReadStream(file), hash)
  return hash.digest('hex')
}

/** How DSSE prepares what is signed: the lengths keep the type and the payload apart. */
function preAuthentication(payload: Uint8Array): Buffer {
  return Buffer.concat([Buffer.from(`DSSEv1 ${payloadType.length} ${payloadType} ${payload.length} `), payload])
}

/** The SHA-256 of the public key in DER. */
export function keyId(key: KeyObject): string {
  return createHash('sha256')
    .update(key.export({ type: 'spki', format: 'der' }))
    .digest('hex')
}

export function signEnvelope(statement: unknown, key: KeyObject): string {
  const payload = Buffer.from(JSON.stringify(statement))
  const sig = sign(null, preAuthentication(payload), key).toString('base64')
  const signatures = [{ keyid: keyId(createPublicKey(key)), sig }]
  return `${JSON.stringify({ payloadType, payload: payload.toString('base64'), signatures })}\n`
}

const envelopeSchema = z.object({
  payloadType: z.literal(payloadType),
  payload: z.base64(),
  signatures: z.array(z.object({ sig: z.base64() })),
})

const statementSchema = z.object({
  subject: z.array(z.object({ name: z.string(), digest: z.object({ sha256: z.string() }) })),
  predicate: z.object({
    buildDefinition: z.object({
      externalParameters: z.object({ version: z.string(), commit: z.string() }),
    }),
    runDetails: z.object({ builder: z.object({ id: z.string() }) }),
  }),
})

export type Statement = z.infer<typeof statementSchema>

/** The statement in an envelope that the key signed; undefined if it did not, or if it is something else. */
export function openEnvelope(text: string, key: KeyObject): Statement | undefined {
  try {
    const { payload, signatures } = envelopeSchema.parse(JSON.parse(text))
    const bytes = Buffer.from(payload, 'base64')
    const isSigned = signatures.some(({ sig }) =>
      verify(null, preAuthentication(bytes), key, Buffer.from(sig, 'base64')),
    )
    return isSigned ? statementSchema.parse(JSON.parse(bytes.toString())) : undefined
  } catch {
    return undefined
  }
}
