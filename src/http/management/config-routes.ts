// The configuration in force, setting by setting, and where each came from. Secrets are only said to be set.

import { z } from 'zod'
import { listAnswer, listSchema } from './paging.ts'
import { defineRoute, type Route } from './route.ts'

const settingSchema = z.object({
  name: z.string().describe('As the file names it, or the variable where there is no such name.'),
  value: z.string().describe('A secret is `set`.'),
  source: z.string().describe('A variable, a line of the file, or `default`.'),
})

export interface ConfigDependencies {
  settings(): readonly z.input<typeof settingSchema>[]
}

export function configRoutes({ settings }: ConfigDependencies): readonly Route[] {
  return [
    defineRoute({
      method: 'GET',
      path: '/api/config',
      operation: 'getConfig',
      summary: 'Lists each setting in force and where it came from; secrets are only said to be set.',
      answer: listSchema(settingSchema),
      status: 200,
      run: async () => listAnswer(settings(), undefined),
    }),
  ]
}
