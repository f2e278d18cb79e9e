PRAGMA application_id=1836019566;
PRAGMA user_version=3;
BEGIN TRANSACTION;
CREATE TABLE calls (
            run INTEGER NOT NULL,
            position INTEGER NOT NULL,
            tool TEXT NOT NULL,
            status TEXT NOT NULL,
            started REAL NOT NULL,
            queued REAL NOT NULL,
            duration REAL NOT NULL,
            bytes_in INTEGER NOT NULL,
            bytes_out INTEGER NOT NULL,
            PRIMARY KEY (run, position)
        ) WITHOUT ROWID
        ;
INSERT INTO "calls" VALUES(1,1,'pay','ok',1.79493020535234165191e+09,4.71539599993775482289e-03,1.55132200006846687756e-03,32,14);
INSERT INTO "calls" VALUES(3,1,'pay','in_flight',1.79493020538547182088e+09,3.91851999665959738194e-04,8.09897000181081239134e-04,32,0);
INSERT INTO "calls" VALUES(3,2,'pay','in_flight',1.79493020539299702647e+09,1.7497900034868507646e-04,3.10809996335592586547e-05,32,0);
CREATE TABLE chain (
            position INTEGER PRIMARY KEY,
            kind TEXT NOT NULL,
            run TEXT NOT NULL,
            call INTEGER NOT NULL,
            size INTEGER NOT NULL,
            digest TEXT NOT NULL,
            hash TEXT NOT NULL
        );
INSERT INTO "chain" VALUES(1,'start','0e6668d5a01dcdb2b0dd0d0edd15c995',0,944,'2955c95d2415e07b6c1d71a9e866a0bfa3eb88f82be354330e53967e1983c8b6','04123980c1e129a6341c98911afd6ae826ad6a76da2495753bca1e23f52358a9');
INSERT INTO "chain" VALUES(2,'call','0e6668d5a01dcdb2b0dd0d0edd15c995',1,270,'d8bb4fc16f722c11532318cd5d636ca7d277a8717e4c3533e2cf0c3e9be1d38d','e2ea16040feba00c20f01fe534117b80f55f5f2bbf9d22911ed2c8f7af7a67fc');
INSERT INTO "chain" VALUES(3,'run','0e6668d5a01dcdb2b0dd0d0edd15c995',0,948,'ef889161059109e2a988314cd4db119bc989f780e88f0a77aa24f3066e1ffda9','6a7dd3743b4a0a93053dc03415cc9597fc3a468a6e7ba25e831f141e6c4ceb54');
INSERT INTO "chain" VALUES(4,'run','8c53220ba1edd34a1a74cf0c2d35f7c8',0,994,'4155652773dd2104240f63185ecad09e40e59e822bc2048bcc51d0391ad20d97','d6e8c6d422547904999060bc61c76fde6f50800766c9558c7639200ad66df178');
INSERT INTO "chain" VALUES(5,'start','d0c528ed2126e4f5316869549da78352',0,964,'a07540eac69bf7d6c0f50bf5c3399cfbb5c31502c0379f0079ace0c4dfe69d55','69af3b90d7c18becc58085a709623d14124b7e4b9db676e742438466f3eb2fdf');
INSERT INTO "chain" VALUES(6,'call','d0c528ed2126e4f5316869549da78352',1,272,'e9815fa8c65b4fa325c127db0f312d6b01d7477dc5499c3ce96a2dff83d91d94','44bea8410d943907438ce0f6e8886f875f6c66457bbdcd1b02669407f8bed6af');
INSERT INTO "chain" VALUES(7,'call','d0c528ed2126e4f5316869549da78352',2,271,'2b696fdb3a8098e49cdbb6aee9c6e499b9786d44b5c6b7514ef6640de28e9776','786692f7a3b86dff53ec4aea69af7dea284115fea4b5aa0d3c1b8d30780cb310');
CREATE TABLE intents (
            run TEXT NOT NULL,
            position INTEGER NOT NULL,
            record TEXT NOT NULL,
            PRIMARY KEY (run, position)
        ) WITHOUT ROWID
        ;
INSERT INTO "intents" VALUES('d0c528ed2126e4f5316869549da78352',1,'{"index":1,"tool":"pay","arguments":{"amount":2},"status":"in_flight","ok":false,"result":null,"error":null,"started":1794930205.3854718,"queued":0.00039185199966595974,"duration":0.0008098970001810812,"bytes_in":32,"bytes_out":0,"approval":null,"retry_of":null,"batch":1}');
INSERT INTO "intents" VALUES('d0c528ed2126e4f5316869549da78352',2,'{"index":2,"tool":"pay","arguments":{"amount":3},"status":"in_flight","ok":false,"result":null,"error":null,"started":1794930205.392997,"queued":0.00017497900034868508,"duration":3.108099963355926e-05,"bytes_in":32,"bytes_out":0,"approval":null,"retry_of":null,"batch":2}');
CREATE TABLE migrations (position INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at TEXT);
INSERT INTO "migrations" VALUES(0,'create_runs_and_calls','2026-11-17 15:43:25');
INSERT INTO "migrations" VALUES(1,'index_runs_by_repl','2026-11-17 15:43:25');
INSERT INTO "migrations" VALUES(2,'create_chain','2026-11-17 15:43:25');
CREATE TABLE runs (
            seq INTEGER PRIMARY KEY,
            id TEXT NOT NULL UNIQUE,
            started REAL NOT NULL,
            language TEXT NOT NULL,
            repl TEXT NOT NULL,
            kind TEXT,
            calls INTEGER NOT NULL,
            failed_calls INTEGER NOT NULL,
            wall REAL NOT NULL,
            title TEXT NOT NULL,
            record TEXT NOT NULL
        );
INSERT INTO "runs" VALUES(1,'0e6668d5a01dcdb2b0dd0d0edd15c995',1.79493020528913068767e+09,'lua','',NULL,1,0,6.9873557999926561024e-02,'return tools.pay{amount = 1}','{"id":"0e6668d5a01dcdb2b0dd0d0edd15c995","ok":true,"language":"lua","source":"return tools.pay{amount = 1}","values":["paid"],"output":"","output_cut":0,"calls":[{"index":1,"tool":"pay","arguments":{"amount":1},"status":"ok","ok":true,"result":"paid","error":null,"started":1794930205.3523417,"queued":0.004715395999937755,"duration":0.0015513220000684669,"bytes_in":32,"bytes_out":14,"approval":null,"retry_of":null,"batch":1}],"usage":{"wall":0.06987355799992656,"cpu":0.000295452,"operations":null,"peak_memory":11964,"calls":1,"bytes_in":59,"bytes_out":82,"native":true},"error":null,"started":1794930205.2891307,"repl":"","number":1,"parent":"","tool":"","seed":53621346375871661,"observations":[],"state_lost":false,"kept":"","kept_output":"","notes":[],"limits":{"timeout":30.0,"max_operations":null,"max_tool_calls":1000,"max_memory":67108864,"max_string":10000000,"max_array":100000,"max_output":65536,"max_depth":64,"max_source":1048576}}');
INSERT INTO "runs" VALUES(2,'8c53220ba1edd34a1a74cf0c2d35f7c8',1.79493020536109924314e+09,'lua','','check',0,0,5.16575900019233813509e-03,'return tools.pay{amount = ''x''}','{"id":"8c53220ba1edd34a1a74cf0c2d35f7c8","ok":false,"language":"lua","source":"return tools.pay{amount = ''x''}","values":[],"output":"","output_cut":0,"calls":[],"usage":{"wall":0.005165759000192338,"cpu":0.0,"operations":null,"peak_memory":0,"calls":0,"bytes_in":0,"bytes_out":0,"native":false},"error":{"kind":"check","message":"invalid arguments for pay:\n- amount: expected integer, got \"x\" (string)\nvalid parameters: amount* (integer)","line":1,"column":8,"traceback":"1 | return tools.pay{amount = ''x''}\n  |        ^","limit":null,"hint":null,"code":"invalid_arguments","tool":"pay","retryable":false,"data":null,"frames":[]},"started":1794930205.3610992,"repl":"","number":1,"parent":"","tool":"","seed":48378843145445448,"observations":[],"state_lost":false,"kept":"","kept_output":"","notes":[],"limits":{"timeout":30.0,"max_operations":null,"max_tool_calls":1000,"max_memory":67108864,"max_string":10000000,"max_array":100000,"max_output":65536,"max_depth":64,"max_source":1048576}}');
INSERT INTO "runs" VALUES(3,'d0c528ed2126e4f5316869549da78352',1794930205.37704,'lua','','unfinished',2,2,0.0,'tools.pay{amount = 2} return tools.pay{amount = 3}','{"id":"d0c528ed2126e4f5316869549da78352","ok":false,"language":"lua","source":"tools.pay{amount = 2} return tools.pay{amount = 3}","values":[],"output":"","output_cut":0,"calls":[],"usage":{"wall":0.0,"cpu":0.0,"operations":null,"peak_memory":0,"calls":0,"bytes_in":0,"bytes_out":0,"native":false},"error":{"kind":"crashed","message":"the end of this run was never written: it is still under way, or its host died; the calls that were started may have taken effect","line":null,"column":null,"traceback":"","limit":null,"hint":null,"code":"unfinished","tool":null,"retryable":false,"data":null,"frames":[]},"started":1794930205.37704,"repl":"","number":1,"parent":"","tool":"","seed":44456117527154850,"observations":[],"state_lost":true,"kept":"","kept_output":"","notes":[],"limits":{"timeout":30.0,"max_operations":null,"max_tool_calls":1000,"max_memory":67108864,"max_string":10000000,"max_array":100000,"max_output":65536,"max_depth":64,"max_source":1048576}}');
CREATE INDEX runs_by_time ON runs (started);
CREATE INDEX runs_by_repl ON runs (repl, started);
CREATE INDEX chain_by_run ON chain (run);
COMMIT;
