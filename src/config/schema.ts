// The whole configuration file as a schema, and the JSON Schema made from it for editors.

import { z } from 'zod'
import { builtInChangeSchema, modelEntrySchema } from '../catalog/entry.ts'
import { providerEntrySchema } from '../providers/entry.ts'
import { billEntrySchema } from './bill-entry.ts'
import { policyEntrySchema } from './policy-entry.ts'
import { description, type SettingSection } from './setting.ts'
import { bySection, type SectionName, sections } from './settings.ts'

export const sectionSchemas = bySection((name) => {
  const { about, settings }: SettingSection = sections[name]
  const shape = Object.entries(settings).map(([key, row]) => [key, row.schema.optional().describe(description(row))])
  return z.strictObject(Object.fromEntries(shape)).describe(about)
})

/** A section with nothing below it, as is left when all its lines are commented out, is the same as no section. */
const { server, ...furtherSections } = bySection((name) => sectionSchemas[name].nullish())

/** What the file or the environment sets, by section and name in the file. Each value has passed its schema. */
export type SectionInputs = Readonly<Record<SectionName, Readonly<Record<string, unknown>>>>

export const configFileSchema = z.strictObject({
  $schema: z.string().optional().describe('For editors; not read.'),
  server,
  providers: z
    .array(providerEntrySchema)
    .nullish()
    .describe('The hosts of models. An entry replaces the built-in provider with the same id.'),
  disabled_providers: z
    .array(z.string().min(1))
    .nullish()
    .describe('Ids of providers that are never called, however they were enabled, nor with workspaces’ own keys.'),
  models: z
    .array(z.union([modelEntrySchema, builtInChangeSchema]))
    .nullish()
    .describe(
      'The models that callers can use. An entry replaces the built-in model with the same id; one with `id` and `fallbacks` alone only adds fallbacks to it.',
    ),
  bills: z
    .array(billEntrySchema)
    .nullish()
    .describe('Where the bills of providers are read, to compare them with what was recorded; one for each provider.'),
  policies: z.array(policyEntrySchema).nullish().describe('Endpoints that may refuse requests and answers.'),
  aliases: z
    .record(z.string().min(1), z.string().min(1))
    .nullish()
    .describe('Further names of models: name to model id. A project can have its own.'),
  ...furtherSections,
})

export function configJsonSchema(): z.core.JSONSchema.BaseSchema {
  return z.toJSONSchema(configFileSchema.meta({ title: 'Tollgate configuration' }), { io: 'input' })
}

/** The text of tollgate.schema.json; short lists stay on one line, as the formatter wants them. */
export function renderJsonSchema(): string {
  const text = JSON.stringify(configJsonSchema(), null, 2)
  return `${text.replace(/\[\s+(["\d][^\]{}]*?)\s+\]/g, (_, items: string) => `[${items.replace(/\s*\n\s*/g, ' ')}]`)}\n`
}
