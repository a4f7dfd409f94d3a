// Ids have a prefix in the text and in the type, so that a reader knows what an id names and mixing two kinds is a type
// error. The rest is a UUIDv7 in Crockford's base32: 26 characters that ascend with time and hold no meaning or secret.

import { assert } from './failure.ts'

export type RequestId = `req_${string}`
export type WorkspaceId = `ws_${string}`
export type ProjectId = `prj_${string}`
export type KeyId = `key_${string}`
export type TransferId = `tr_${string}`
export type PersonId = `per_${string}`
/** A named set of people and keys of a workspace. */
export type GroupId = `grp_${string}`
/** A person's role in a workspace, or as an operator. */
export type MemberId = `mem_${string}`
export type InvitationId = `inv_${string}`
/** A personal management token. */
export type TokenId = `tok_${string}`
/** A session of the console. */
export type SessionId = `ses_${string}`
/** A device on which a person is signed in. */
export type SignInId = `sgn_${string}`
/** A sign-in that waits for its person's approval. */
export type DeviceGrantId = `dgr_${string}`
export type PaymentId = `pay_${string}`
export type RefundId = `rfn_${string}`
/** Of a batch that was created with OpenAI's API, or with Anthropic's. */
export type BatchId = `batch_${string}` | `msgbatch_${string}`
/** A batch at a provider, with lines of one of ours. */
export type JobId = `job_${string}`
/** A file of a batch. */
export type FileId = `file_${string}`
/** One process among several on a database. */
export type ReplicaId = `rep_${string}`
export type IdPrefix =
  | 'req'
  | 'ws'
  | 'prj'
  | 'key'
  | 'tr'
  | 'rep'
  | 'per'
  | 'grp'
  | 'mem'
  | 'inv'
  | 'tok'
  | 'ses'
  | 'sgn'
  | 'dgr'
  | 'alr'
  | 'whk'
  | 'rul'
  | 'dlv'
  | 'pay'
  | 'rfn'
  | 'batch'
  | 'msgbatch'
  | 'job'
  | 'file'

const alphabet = Buffer.from('0123456789ABCDEFGHJKMNPQRSTVWXYZ')

const idLength = 26
const idBody = /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/
/** Scratch space: filled and read within one call. */
const letters = Buffer.alloc(idLength)

/** Twenty-six characters carry 130 bits; the first one holds only the top three of the 128. */
function base32(bytes: Uint8Array): string {
  let bits = 0
  let pending = 2
  let at = 0
  for (let place = 0; place < bytes.length; place++) {
    bits = (bits << 8) | (bytes[place] as number)
    pending += 8
    while (pending >= 5) {
      pending -= 5
      letters[at++] = alphabet[(bits >>> pending) & 31] as number
    }
    bits &= (1 << pending) - 1
  }
  assert(at === idLength, 'an id has 26 characters')
  // One native call: appending letter by letter would allocate twenty-six strings.
  return letters.toString('latin1')
}

export function createId<Prefix extends IdPrefix>(prefix: Prefix): `${Prefix}_${string}` {
  return `${prefix}_${base32(Bun.randomUUIDv7('buffer'))}`
}

/** Whether it has the form of an id of this kind, not whether it exists. */
export function isId<Prefix extends IdPrefix>(prefix: Prefix, text: string): text is `${Prefix}_${string}` {
  return text.startsWith(`${prefix}_`) && idBody.test(text.slice(prefix.length + 1))
}

/** An id has 48 bits of time and 80 random ones below them. */
const timeShift = 80n

/** The lowest id a request can have that is created in this millisecond. All earlier ids are lower. */
export function firstIdAt(epochMs: number): RequestId {
  assert(Number.isInteger(epochMs) && epochMs >= 0 && epochMs < 2 ** 48, 'a time has 48 bits')
  let rest = BigInt(epochMs) << timeShift
  let digits = ''
  for (let at = 0; at < idLength; at++) {
    digits = String.fromCharCode(alphabet[Number(rest & 31n)] as number) + digits
    rest >>= 5n
  }
  return `req_${digits}`
}
