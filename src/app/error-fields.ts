// An error as a field of a log line.

export function errorFields(error: unknown): { readonly error: string } {
  return { error: error instanceof Error ? error.message : String(error) }
}
