// One entry of the `providers:` list as people write it. References to variables and files are resolved before this
// schema sees the base URL, and no message here may repeat a base URL or a key.

import { z } from 'zod'
import { type DialectId, dialectIds } from '../dialects/dialect.ts'
import type { Secret } from '../kernel/secret.ts'
import { sandboxId } from './sandbox/provider.ts'

/** The sandbox is not a wire format: it answers inside this process, in each dialect. */
const providerDialects = [...dialectIds, sandboxId] as const
const publishedDialects = ['openai-chat', 'anthropic-messages', 'gemini', 'openai-responses', 'bedrock']

const idExpected = 'expected lower-case letters, digits and dashes, at most 63, starting with a letter or digit'
const urlExpected = 'expected an address that starts with http:// or https://'
const keyExpected = `expected a string: \${VARIABLE}, file:/path, or the key itself`

export interface ProviderEntry {
  readonly id: string
  readonly dialect: DialectId | typeof sandboxId
  /** Without a trailing slash; undefined for the sandbox. */
  readonly baseUrl: string | undefined
  readonly apiKey: Secret | undefined
  /** `tollgate.yaml:4` */
  readonly source: string
}

export const providerEntrySchema = z
  .strictObject({
    id: z
      .string({ error: idExpected })
      .regex(/^[a-z0-9][a-z0-9-]{0,62}$/, { error: idExpected })
      .describe('Any name; routes refer to it. The id of a built-in provider replaces that one.'),
    dialect: z
      .enum(providerDialects, {
        error: ({ input }) =>
          typeof input === 'string' && publishedDialects.includes(input)
            ? `"${input}" is not supported in this version; supported: ${providerDialects.join(', ')}`
            : `expected one of ${providerDialects.join(', ')}`,
      })
      .describe('The wire format the provider speaks.'),
    base_url: z
      .string({ error: urlExpected })
      .optional()
      .describe(
        `What the dialect's paths are appended to: openai-chat with /v1, anthropic-messages without. May contain \${VARIABLE}. Required except for the sandbox.`,
      ),
    api_key: z
      .string({ error: keyExpected })
      .min(1, { error: keyExpected })
      .optional()
      .describe(`The credential: \${VARIABLE}, file:/path, or the key itself.`),
  })
  .refine((entry) => baseUrlFault(entry) === undefined, {
    path: ['base_url'],
    error: ({ input }) => baseUrlFault(input),
    // Also when another field is wrong: all faults are told at once.
    when: ({ value }) => typeof value === 'object' && value !== null,
  })

/** The entry may be wrong in other fields, so nothing about it is taken for granted. */
function baseUrlFault(entry: unknown): string | undefined {
  const { dialect, base_url: text } = entry as { readonly dialect?: unknown; readonly base_url?: unknown }
  if (answersInProcess(dialect)) return undefined
  if (text === undefined) return urlExpected
  if (typeof text !== 'string') return undefined
  const url = /\s/.test(text) ? null : URL.parse(text)
  if (url === null || !/^https?:\/\//i.test(text)) return urlExpected
  if (url.username !== '' || url.password !== '') return 'must not contain a user or password; use api_key'
  if (/[?#]/.test(text)) return 'must not contain ? or #: paths are appended to it'
  if (dialect === 'anthropic-messages' && withoutTrailingSlash(text).endsWith('/v1')) {
    return 'must not end in /v1: the anthropic-messages dialect appends it; leave it out'
  }
  return undefined
}

/** Whether a provider of this dialect needs no address. */
export function answersInProcess(dialect: unknown): boolean {
  return dialect === sandboxId
}

function withoutTrailingSlash(url: string): string {
  return url.replace(/\/+$/, '')
}

export function resolveProviderEntry(
  entry: z.infer<typeof providerEntrySchema>,
  resolved: { readonly apiKey: Secret | undefined; readonly source: string },
): ProviderEntry {
  const { id, dialect, base_url: url } = entry
  return {
    id,
    dialect,
    baseUrl: url === undefined || answersInProcess(dialect) ? undefined : withoutTrailingSlash(url),
    apiKey: resolved.apiKey,
    source: resolved.source,
  }
}
