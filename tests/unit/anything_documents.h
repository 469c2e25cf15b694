/* The sagas of test_saga_anything.c: each feature of the language by itself, and beside another feature. */
#ifndef SAGAD_TESTS_ANYTHING_DOCUMENTS_H
#define SAGAD_TESTS_ANYTHING_DOCUMENTS_H

#include "tests/lib/saga_trial.h"

#define CHILD                                                                                                          \
    "{'name':'child','deadline':'10m','output':{'x':'${ .steps.x.result.id }','n':'${ .input | length "                \
    "}'},'input':{'type':'object'},"                                                                                   \
    "'steps':[{'id':'x','call':'keyed','on_failure':'escalate'},{'id':'y','call':'once'},{'id':'m','call':'voidable'," \
    "'when':'${ .input.n > 0 }'}]}"
#define SEALING "{'name':'sealing','steps':[{'id':'x','call':'keyed'},{'id':'m','call':'mail'}]}"
#define NAMING                                                                                                         \
    "{'name':'naming','output':'${ .steps.b.result "                                                                   \
    "}','steps':[{'id':'a','call':'bare'},{'id':'b','call':'bare','with':{'n':'${ .steps.a.result.n }'}}]}"
#define OUTER                                                                                                          \
    "{'name':'outer','output':'${ .steps.p.result "                                                                    \
    "}','steps':[{'id':'p','saga':'child','after':[]},{'id':'q','saga':'child','after':[],'on_failure':'continue'}]}"
#define MORE_TOOLS                                                                                                     \
    "{'name':'paid','builtin':{'do':'echo'},'effect':'keyed','key':{'window':'60s'},'cost':300,'compensate':{'tool':'" \
    "undo'},"                                                                                                          \
    "'precheck':{'builtin':{'do':'echo'},'done':'${ .response.done }','blocked':'${ .response.no }'}},"                \
    "{'name':'bare','builtin':{'do':'echo'},'effect':'once','compensate':{'tool':'undo','with':{'k':'${ .key }'}}},"   \
    "{'name':'undo_either','builtin':{'do':'echo'},'effect':{'if':'${ .args.n "                                        \
    "}','then':'keyed','else':'idempotent'},'key':{'window':'60s'}},"                                                  \
    "{'name':'by_either','builtin':{'do':'echo'},'effect':'checked','probe':{'builtin':{'do':'echo'},'outcome':{'"     \
    "completed':'${ .response.ok }','absent':'${ .response.no }'},'visibility':'5s','give_up_after':'1h'},"            \
    "'compensate':{'tool':'undo_either','with':{'n':'${ .result.id }'},'give_up_after':'10m'}}"
#define WITH_CHILDREN(members, steps)                                                                                  \
    "{'tools':[" TRIAL_TOOLS                                                                                           \
    ",{'name':'either','builtin':{'do':'echo'},'effect':{'if':'${ .args.n > 1 }','then':'once','else':'idempotent'},"  \
    "'compensate':{'tool':'undo','with':{'id':'${ .result.id + 1 }'}}}," MORE_TOOLS                                    \
    "],'sagas':[{'name':'trial'" members ",'steps':[" steps "]}," CHILD "," SEALING "," OUTER "," NAMING "]}"

static const char *const documents[] = {
    /* A person who says that the effect happened must know this result. */
    WITH_CHILDREN(
        ",'output':{'id':'${ .steps.c.result.id }'}",
        "{'id':'a','call':'bare'},{'id':'b','call':'bare','with':{'s':'${ .steps.a.status }','i':'${ .input.n "
        "}','x':'${ .steps.a.result.id }'}},{'id':'c','call':'bare','with':{'n':'${ .steps.b.result.id + 1 }'}},"
        "{'id':'d','call':'bare','on_failure':'escalate','with':{'n':'${ .steps.a.status | length }'}}"),
    WITH_CHILDREN(",'output':{'id':'${ .steps.b.result.id + 1 }','a':'${ .steps.a }'}",
                  "{'id':'a','call':'bare','after':[]},{'id':'b','call':'bare','after':[]},{'id':'o','saga':'naming'}"),
    WITH_CHILDREN(",'output':{'id':'${ .steps.a.result.id }','n':'${ .steps.b.result.id + 1 "
                  "}'},'budget':{'calls':5,'micros':900}",
                  "{'id':'a','call':'once'},{'id':'b','call':'once','on_failure':'escalate','with':{'id':'${ "
                  ".steps.a.result.id }'}},"
                  "{'id':'c','call':'once_probed','with':{'n':1},'scope':'${ .input.n + 1 }','when':'${ .input.n }'},"
                  "{'id':'d','call':'by_either','with':{'id':'${ .steps.a.result.id + 1 }','s':'${ .steps.b.status "
                  "}'}},{'id':'e','call':'paid','with':{'x':'${ .steps.c.result.id // 1 }'}}"),
    WITH_CHILDREN(",'then':[{'saga':'child','input':{'id':'${ .input.id + 1 }'},'id':'x-${ .input.id }'}]",
                  "{'id':'a','call':'read'}"),
    WITH_CHILDREN(",'deadline':'5m'", "{'id':'a','call':'mail_probed','on_failure':'escalate'}"),
    WITH_CHILDREN("", "{'id':'o','saga':'outer','on_failure':'continue'},{'id':'z','call':'once','with':{'s':'${ "
                      ".steps.o.status }'}},{'id':'s','saga':'sealing','on_failure':'escalate','after':['o','z']}"),
    WITH_CHILDREN("", "{'id':'each','saga':'outer','for_each':'${ .input.list "
                      "}','concurrency':2,'after':[]},{'id':'e','call':'paid','for_each':'${ .input.list }','when':'${ "
                      ".input.n }','after':[],'on_failure':'escalate'}"),
    WITH_CHILDREN(
        ",'deadline':'2m','compensation':{'concurrency':2},'output':{'a':'${ .input | length }'}",
        "{'id':'a','call':'keyed','after':[]},{'id':'b','call':'once','after':[],'on_failure':'escalate'},"
        "{'id':'c','call':'checked','after':['a'],'when':'${ .input.n "
        "}'},{'id':'d','call':'once_probed','after':['a','b'],'on_failure':'continue'},"
        "{'id':'e','call':'voidable','after':['c','d'],'with':{'n':'${ 1 + 1 }'},'scope':'${ .input.n + 1 }'}"),
    WITH_CHILDREN(
        ",'output':{'a':'${ .steps.b.result.id }'}",
        "{'id':'r','call':'read'},{'id':'a','call':'idempotent_probed'},{'id':'b','call':'keyed_probed','after':['a']},"
        "{'id':'c','call':'by_checked','after':['a']},{'id':'d','call':'by_keyed','after':['b']},{'id':'m','call':'"
        "mail_probed','after':['r','a','b','c','d']}"),
    WITH_CHILDREN("", "{'id':'a','call':'limited'},{'id':'b','call':'limited_once','after':['a']},{'id':'s','call':'"
                      "strict','with':{'n':1},'after':['a']},"
                      "{'id':'either','call':'either','with':{'n':'${ .input.n }'}}"),
    WITH_CHILDREN("", "{'id':'a','call':'keyed'},{'id':'each','call':'once','for_each':'${ .input.list "
                      "}','concurrency':2,'with':{'n':'${ .item.n }'}},"
                      "{'id':'z','call':'keyed'}"),
    WITH_CHILDREN(
        "",
        "{'id':'each','call':'keyed','for_each':'${ .input.list | map(.) }','on_failure':'continue'},"
        "{'id':'trip','saga':'child','with':{'n':'${ .input.n }'},'on_failure':'continue'},{'id':'z','call':'once'}"),
    WITH_CHILDREN(",'compensation':{'concurrency':2}",
                  "{'id':'a','saga':'child','after':[]},{'id':'b','saga':'child','after':[],'on_failure':'escalate','"
                  "with':{'n':'${ .input.n + 1 }'}},"
                  "{'id':'s','saga':'sealing','after':['a','b']}"),
    WITH_CHILDREN("", "{'id':'each','saga':'child','for_each':'${ .input.list }','with':'${ .item "
                      "}','concurrency':3,'on_failure':'continue'},{'id':'z','call':'checked'}"),
    WITH_CHILDREN(",'locks':['order:${ .input.id + 1 "
                  "}',{'key':'till','when_taken':'fail'}],'then':[{'saga':'child','input':{'id':'${ .input.id "
                  "}'}}],'deadline':'1h'",
                  "{'id':'a','call':'keyed'},{'id':'nap','sleep':'30s'},{'id':'b','call':'once'}"),
    WITH_CHILDREN(
        ",'locks':['k'],'then':[{'saga':'child'}]",
        "{'id':'nap','sleep':'${ .input.n "
        "}','after':[],'on_failure':'continue'},{'id':'sig','signal':{'name':'paid','timeout':'30s'},'after':[],'on_"
        "failure':'escalate'},"
        "{'id':'any','signal':{'name':'other'},'after':[]},{'id':'ok','approve':{'show':{'n':'${ .input.n "
        "}'},'timeout':'1h','roles':['agent','admin']},'after':[]},"
        "{'id':'plain','approve':{},'when':'${ .input.yes }','on_failure':'escalate'},{'id':'b','call':'keyed'}"),
    WITH_CHILDREN("", "{'id':'each','for_each':'${ .input.list }','concurrency':2,'approve':{'show':'${ .item.n }'}},"
                      "{'id':'waits','signal':{'name':'paid'},'for_each':'${ .input.list "
                      "}','after':[],'on_failure':'continue'},{'id':'b','call':'once'}"),
};

#endif
