// An entry of the `bills:` list in the configuration file: where one provider's bill is read. No message may repeat a key.

import { z } from 'zod'
import { type BillSource, billApiFormats, billFileFormats, billFormats } from '../kernel/bill.ts'
import type { Secret } from '../kernel/secret.ts'

export interface BillEntry extends BillSource<Secret> {
  /** `tollgate.yaml:4` */
  readonly source: string
}

const idExpected = 'expected the id of a provider'
const keyExpected = `expected a string: \${VARIABLE}, file:/path, or the key itself`

export const billEntrySchema = z
  .strictObject({
    provider: z
      .string({ error: idExpected })
      .regex(/^[a-z0-9][a-z0-9-]{0,62}$/, { error: idExpected })
      .describe('The id of the provider whose bill it is.'),
    format: z
      .enum(billFormats, { error: `expected one of ${billFormats.join(', ')}` })
      .describe(
        'How it is read. anthropic: usage and cost analytics; anthropic-reports: the older usage and cost reports; openai: organization usage and costs; openrouter: activity; replies: the cost in every answer, as xAI sends it; focus: FOCUS files of a cloud; csv: a file with the documented columns.',
      ),
    admin_key: z
      .string({ error: keyExpected })
      .min(1, { error: keyExpected })
      .optional()
      .describe(
        `The key that may read the report, which is not the key for calls: \${VARIABLE}, file:/path, or the key itself. Needed for reports that are read over the network.`,
      ),
    base_url: z
      .url({ protocol: /^https?$/, error: 'expected an address such as https://api.example.com' })
      .overwrite((url) => url.replace(/\/+$/, ''))
      .optional()
      .describe("Where the report is, without its path. Default: the provider's own address."),
    keys: z
      .array(z.string().min(1))
      .min(1)
      .optional()
      .describe(
        "The provider's ids of the API keys that the gateway uses, such as apikey_01…; what other keys used is listed apart. Default: everything that the provider bills is compared.",
      ),
    path: z.string().min(1).optional().describe('For focus and csv: a file, or a folder of CSV files.'),
    models: z
      .record(z.string().min(1), z.string().min(1))
      .optional()
      .describe('For focus and csv: words of the file to the model they stand for, or to `model bucket`.'),
  })
  .refine(({ format, admin_key }) => admin_key !== undefined || !billApiFormats.has(format), {
    path: ['admin_key'],
    error: 'is needed: the report is read over the network, with an admin key of its own',
  })
  .refine(({ format, path }) => path !== undefined || !billFileFormats.has(format), {
    path: ['path'],
    error: 'is needed: the bill is in a file',
  })

export function billFromEntry(
  entry: z.output<typeof billEntrySchema>,
  { adminKey, source }: { readonly adminKey: Secret | undefined; readonly source: string },
): BillEntry {
  const { provider, format, base_url: baseUrl, keys, path, models = {} } = entry
  return { provider, format, adminKey, baseUrl, keys, path, models, source }
}
