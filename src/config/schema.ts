// The whole configuration file as a schema, and the JSON Schema made from it for editors.
// `bun run src/config/schema.ts --write` renews tollgate.schema.json.

import { z } from 'zod'
import { modelEntrySchema } from '../catalog/entry.ts'
import { parseIpRange } from '../kernel/ip-range.ts'
import { providerEntrySchema } from '../providers/entry.ts'

const gibibyte = 2 ** 30

export const serverSchema = z
  .strictObject({
    host: z
      .string()
      .regex(/^[A-Za-z0-9.:_%-]+$/, {
        error: 'expected a host name or address such as 127.0.0.1, without port or brackets',
      })
      .optional()
      .describe('Address to listen on. Default 127.0.0.1.'),
    port: z.int().min(0).max(65535).optional().describe('Port to listen on; 0 = any free one. Default 8080.'),
    data: z
      .string()
      .min(1, { error: 'expected the path of a folder' })
      .optional()
      .describe(
        'Folder of the embedded database and generated secrets, relative to the working folder. Default ./data.',
      ),
    log: z.enum(['pretty', 'json']).optional().describe('Log format. Default: pretty on a terminal, json otherwise.'),
    sandbox: z
      .union([z.enum(['on', 'off']), z.boolean()], { error: 'expected on or off' })
      .optional()
      .describe('off hides the sandbox provider and its models. Default on.'),
    body_bytes_max: z
      .int()
      .min(1024)
      .max(gibibyte)
      .optional()
      .describe('Largest request body in bytes. Default 33554432 (32 MiB).'),
    drain_seconds: z
      .number()
      .min(0)
      .max(3600)
      .optional()
      .describe('How long a stopping gateway waits for running requests. Default 120.'),
    drain_delay_seconds: z
      .number()
      .min(0)
      .max(60)
      .optional()
      .describe(
        'How long a stopping gateway still takes requests, so that a balancer can notice. Default 5 with PostgreSQL, else 0.',
      ),
    public_url: z
      .url({ protocol: /^https?$/, error: 'expected the address people use, such as https://gate.example.com' })
      .optional()
      .describe('Where people reach the gateway, for links. Default: where it listens.'),
    requests_retention_days: z
      .int()
      .min(0)
      .max(36_500)
      .optional()
      .describe('How long the request log is kept; 0 = for ever. Charges are always kept. Default 90.'),
    catalog: z
      .enum(['public', 'signed-in'])
      .optional()
      .describe('Who may read the catalog, as pages and as GET /api/catalog. Default public.'),
    local_models: z
      .union([z.enum(['on', 'off']), z.boolean()], { error: 'expected on or off' })
      .optional()
      .describe('on looks for model servers on the usual ports of this machine at start. Default on.'),
    trusted_proxies: z
      .array(
        z.string().refine((text) => parseIpRange(text) !== undefined, {
          error: 'expected an address or a range whose bits after the prefix are 0, such as 10.0.0.0/8',
        }),
      )
      .optional()
      .describe('Proxies whose X-Forwarded-For is believed: addresses and ranges. Default none.'),
  })
  .describe('Settings of the process. A variable of the environment wins over each of them.')

const limit = (meaning: string) => z.int().min(1).max(1_000_000_000).optional().describe(meaning)

const limitsSchema = z
  .strictObject({
    requests_per_minute: limit('Requests per minute and key: a burst of that many, refilled evenly.'),
    tokens_per_minute: limit('Input and output tokens per minute and key.'),
    concurrent_requests: limit('Requests of one key that run at the same time.'),
  })
  .describe('Limits of every key that has none of its own; what is left out is unlimited.')

const ownKeysSchema = z
  .strictObject({
    fee_percent: z
      .number()
      .min(0)
      .max(100)
      .multipleOf(0.01, { error: 'expected a percentage with at most two decimals' })
      .optional()
      .describe("What a call on a workspace's own provider key costs, in percent of the model's price. Default 0."),
    base_urls: z.boolean().optional().describe('Whether a workspace may bring an address with its key. Default false.'),
    allow_hosts: z
      .array(z.string().min(1))
      .optional()
      .describe('Hosts, addresses and ranges that such an address may have although they are not public.'),
    plain_http: z.boolean().optional().describe('Whether such an address may be http on port 80. Default false.'),
  })
  .describe('Provider keys that workspaces bring themselves.')

const retriesSchema = z
  .strictObject({
    attempts: z.int().min(1).max(10).optional().describe('Attempts of one request in all; 1 = no retries. Default 3.'),
    backoff_ms: z
      .int()
      .min(0)
      .max(60_000)
      .optional()
      .describe('Upper bound of the first wait, drawn at random below it; doubles with each retry. Default 2000.'),
    total_ms: z
      .int()
      .min(0)
      .max(60_000)
      .optional()
      .describe('No retry starts later than this after all routes have failed for the first time. Default 8000.'),
  })
  .describe('Retries on the same route when no other is left and the fault may pass.')

/** A section with nothing below it, as is left when all its lines are commented out, is the same as no section. */
export const configFileSchema = z.strictObject({
  $schema: z.string().optional().describe('For editors; not read.'),
  server: serverSchema.nullish(),
  providers: z
    .array(providerEntrySchema)
    .nullish()
    .describe('Who hosts models. An entry replaces the built-in provider of the same id.'),
  models: z
    .array(modelEntrySchema)
    .nullish()
    .describe('Models on offer. An entry replaces the built-in model of the same id.'),
  limits: limitsSchema.nullish(),
  own_keys: ownKeysSchema.nullish(),
  retries: retriesSchema.nullish(),
})

export type ServerSection = z.infer<typeof serverSchema>
export type LimitsSection = z.infer<typeof limitsSchema>
export type OwnKeysSection = z.infer<typeof ownKeysSchema>
export type RetriesSection = z.infer<typeof retriesSchema>

export function configJsonSchema(): z.core.JSONSchema.BaseSchema {
  return z.toJSONSchema(configFileSchema.meta({ title: 'Tollgate configuration' }), { io: 'input' })
}

/** The text of tollgate.schema.json; short lists stay on one line, as the formatter wants them. */
export function renderJsonSchema(): string {
  const text = JSON.stringify(configJsonSchema(), null, 2)
  return `${text.replace(/\[\s+("[^\]{}]*?")\s+\]/g, (_, items: string) => `[${items.replace(/\s*\n\s*/g, ' ')}]`)}\n`
}

if (import.meta.main) {
  const path = `${import.meta.dir}/../../tollgate.schema.json`
  if (process.argv.includes('--write')) await Bun.write(path, renderJsonSchema())
  else process.stdout.write(renderJsonSchema())
}
