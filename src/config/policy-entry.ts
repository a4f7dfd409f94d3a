// An entry of the `policies:` list in the configuration file: an endpoint that may refuse requests and answers. No message
// may repeat a secret.

import { z } from 'zod'
import type { ProjectId, WorkspaceId } from '../kernel/ids.ts'
import type { Policy } from '../kernel/policy.ts'
import { policyFailureModes, policyMedia, policyModes, policyMoments } from '../kernel/policy-words.ts'
import type { Secret } from '../kernel/secret.ts'

export interface PolicyEntry extends Policy {
  /** `tollgate.yaml:4` */
  readonly source: string
}

const secretExpected = `expected a string: \${VARIABLE}, file:/path, or the secret itself`
const modelPattern = /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}\/(\*|[A-Za-z0-9][A-Za-z0-9._:@+-]{0,127}(\/?\*)?)$/

const oneOf = <const Words extends readonly [string, ...string[]]>(words: Words) =>
  z.enum(words, { error: `expected ${words.slice(0, -1).join(', ')} or ${words.at(-1)}` })

export const policyEntrySchema = z.strictObject({
  id: z
    .string({ error: 'expected a name for the policy' })
    .regex(/^[a-z0-9][a-z0-9-]{0,62}$/, {
      error: 'expected lower-case letters, digits and hyphens, such as no-secrets',
    })
    .describe('Names the policy in errors, in the request log and in metrics.'),
  url: z
    .url({ protocol: /^https?$/, error: 'expected an address such as http://127.0.0.1:9000/check' })
    .refine((url) => !url.includes('#') && URL.parse(url)?.username === '', {
      error: 'expected an address without a user, a password or #',
    })
    .describe('Where requests and answers are sent by POST to be judged.'),
  secret: z
    .string({ error: secretExpected })
    .min(1, { error: secretExpected })
    .describe(
      `Signs every call, so that the endpoint can tell who sends it: \${VARIABLE}, file:/path, or the secret itself. whsec_ and 24 to 64 bytes in base64.`,
    ),
  when: oneOf(policyMoments)
    .optional()
    .describe(
      'request: before a request is sent to a provider; answer: before an answer is sent to the client, which holds the whole answer back; both. Default request.',
    ),
  workspace: z
    .string()
    .regex(/^ws_/, { error: 'expected the id of a workspace (ws_…)' })
    .optional()
    .describe('Only for this workspace. Default: all.'),
  projects: z
    .array(z.string().regex(/^prj_/, { error: 'expected the id of a project (prj_…)' }))
    .min(1)
    .optional()
    .describe('Only for these projects. Default: all.'),
  models: z
    .array(
      z.string().regex(modelPattern, {
        error: "expected a model's id (creator/model) or a pattern (creator/*, creator/model-*)",
      }),
    )
    .min(1)
    .optional()
    .describe('Only for requests that one of these models may serve, fallbacks included. Default: all.'),
  timeout_ms: z
    .int()
    .min(10)
    .max(10_000)
    .optional()
    .describe('How long the endpoint may take, in milliseconds. Default 1000.'),
  on_failure: oneOf(policyFailureModes)
    .optional()
    .describe(
      'What happens if the endpoint gives no verdict. closed: the request is refused; open: it goes on, and its record says so. Default closed.',
    ),
  mode: oneOf(policyModes).optional().describe('enforce, or watch: verdicts are only recorded. Default enforce.'),
  images: oneOf(policyMedia)
    .optional()
    .describe('How images and documents are sent. digest: their SHA-256 and size; bytes: in base64. Default digest.'),
})

export function policyFromEntry(
  entry: z.output<typeof policyEntrySchema>,
  { secret, source }: { readonly secret: Secret; readonly source: string },
): PolicyEntry {
  const { id, url, when = 'request', workspace, projects, models, timeout_ms: timeoutMs = 1000 } = entry
  const { on_failure: onFailure = 'closed', mode = 'enforce', images = 'digest' } = entry
  return {
    ...{ id, url, secret, when, models, timeoutMs, onFailure, mode, images, source },
    workspaceId: workspace as WorkspaceId | undefined,
    projects: projects as readonly ProjectId[] | undefined,
  }
}

const secretPrefix = 'whsec_'
const secretBytesMin = 24
const secretBytesMax = 64

/** undefined = a policy can be signed with it. */
export function policySecretFault(secret: Secret): string | undefined {
  const text = secret.reveal()
  const encoded = text.slice(secretPrefix.length)
  const { length } = Buffer.from(encoded, 'base64')
  const isBase64 = /^[A-Za-z0-9+/]+={0,2}$/.test(encoded)
  if (text.startsWith(secretPrefix) && isBase64 && length >= secretBytesMin && length <= secretBytesMax)
    return undefined
  return 'expected whsec_ followed by 24 to 64 bytes in base64; make one with: echo "whsec_$(openssl rand -base64 32)"'
}
