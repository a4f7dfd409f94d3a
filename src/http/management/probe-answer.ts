// What the management API says of a key that was tried at its provider.

import { z } from 'zod'
import { isoTime } from '../../kernel/clock.ts'
import type { Probe, ProbeVerdict } from '../../routing/probe-provider.ts'
import { time } from './answers.ts'

export const probeSchema = z
  .object({
    verdict: z
      .enum(['ok', 'refused', 'no_credit', 'throttled', 'failing', 'wrong_address', 'unreachable'])
      .describe('`ok`: the provider takes the key.'),
    message: z.string().describe('The same for people. Nothing of what the provider said is in it.'),
    status: z.number().nullable().describe('What the provider answered with; null = it did not.'),
    tested_at: time,
  })
  .describe('Tried with an empty request, which generates nothing and costs nothing.')

type ShownVerdict = z.input<typeof probeSchema>['verdict']

const words: Readonly<Record<ProbeVerdict, readonly [ShownVerdict, string]>> = {
  accepted: ['ok', 'The provider takes the key.'],
  inside: ['ok', 'It answers inside the gateway and needs no key.'],
  refused: ['refused', 'The provider refuses the key. Put a good one in its place.'],
  'out of credit': ['no_credit', 'The provider takes the key, but its account has no credit. Top it up there.'],
  throttled: ['throttled', 'The provider takes the key, but throttles it now. Try again in a minute.'],
  failing: ['failing', 'The provider is in trouble. Try again later.'],
  redirecting: ['wrong_address', 'The address answers with a redirect, which is not followed. Mend the address.'],
  'wrong address': ['wrong_address', 'Somebody answers at the address, but not this provider. Mend the address.'],
  unreachable: ['unreachable', 'The provider cannot be reached'],
}

export function probeAnswer({ verdict, status, why }: Probe, now: number): z.input<typeof probeSchema> {
  const [shown, text] = words[verdict]
  const message = verdict === 'unreachable' ? `${text} (${why ?? 'the call failed'}).` : text
  return { verdict: shown, message, status: status ?? null, tested_at: isoTime(now) }
}
