// What `tollgate --help` prints.

export const help = `tollgate: one gateway over many models, in the OpenAI and the Anthropic dialect

Usage
  tollgate [serve]        start the gateway (also: npm start)
  tollgate conformance    check how well any endpoint speaks its dialect (--help tells more)
  tollgate --help         this page
  tollgate --version      the version

Settings come from the environment, then tollgate.yaml, then defaults.
  TOLLGATE_HOST, TOLLGATE_PORT   where to listen (127.0.0.1, 8080; port 0 = any free one)
  TOLLGATE_DATA                  folder of the database and generated secrets (./data)
  TOLLGATE_CONFIG                configuration file (./tollgate.yaml if it is there)
  TOLLGATE_SECRET                master secret (generated into the data folder)
  TOLLGATE_SANDBOX               off hides the offline sandbox models (on)
  TOLLGATE_LOG                   pretty or json (pretty on a terminal)
  TOLLGATE_DRAIN_SECONDS         how long a stop waits for running requests (120)
  DATABASE_URL                   postgres://… instead of the embedded SQLite
  OPENAI_API_KEY, ANTHROPIC_API_KEY   switch these providers on

Try it
  npm start                      then run the curl line it prints
  docs/reference/configuration.md has every setting, docs/errors.md every error.
`
