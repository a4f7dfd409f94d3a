// What operators set about the export of prompts and answers to their own collector, for the projects that export them.

/** What is redacted: keys of well-known forms, e-mail addresses, card numbers. */
export const redactionRules = ['keys', 'emails', 'cards'] as const
export type RedactionRule = (typeof redactionRules)[number]

export interface ContentExportSettings {
  /** Where OTLP is sent, without `/v1/traces`; undefined = content is not exported. */
  readonly url: string | undefined
  /** The share of conversations, in hundredths of a percent. */
  readonly sampleBasisPoints: number
  /** Characters of the input, and again of the output. */
  readonly charactersMax: number
  readonly redact: readonly RedactionRule[]
  /** Whether answers say in a header that they are exported. */
  readonly isAnnounced: boolean
}
