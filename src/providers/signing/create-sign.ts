// The schemes whose credential is never sent, each as a function that signs a request. The table is all that knows them.

import type { Clock } from '../../kernel/clock.ts'
import type { Secret } from '../../kernel/secret.ts'
import type { AuthScheme, Proof, Sign, SigningScheme } from '../provider.ts'
import { AccessTokens } from './access-tokens.ts'
import { parseAwsCredential, signAws } from './sigv4.ts'

export interface SigningInput {
  readonly clock: Clock
  readonly operator: Secret | undefined
}

const schemes: Readonly<Record<SigningScheme, (input: SigningInput) => Sign>> = {
  sigv4: ({ clock }) => {
    return async (request, credential) => {
      const pair = parseAwsCredential(credential.reveal())
      // What is no pair is an API key of the service, which is sent as it is.
      if (!pair) return { authorization: `Bearer ${credential.reveal()}` }
      return signAws(request, pair, { epochMs: clock.now() })
    }
  },
  'google-oauth': (input) => {
    const tokens = new AccessTokens(input)
    const proofOf = (token: string): Proof => ({ authorization: `Bearer ${token}` })
    const sign: Sign = async (_, credential) => proofOf(await tokens.tokenFor(credential))
    return Object.assign(sign, {
      refused: (credential: Secret, { authorization }: Proof) =>
        tokens.drop(credential, (token) => proofOf(token).authorization === authorization),
    })
  },
}

/** undefined = the scheme does not sign. */
export function createSign(auth: AuthScheme, input: SigningInput): Sign | undefined {
  return Object.hasOwn(schemes, auth) ? schemes[auth as SigningScheme](input) : undefined
}
